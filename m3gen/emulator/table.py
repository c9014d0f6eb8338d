"""The table of instructions: mnemonic to operands, semantics, unit and issue cost.

A plain instruction is a function of its sources with a signature, "destinations : sources":

    @instruction("v_lshl_add_u32", "u32 : u32 u32 u32", VALU, "VOP3")
    def _(x, shift, y): return (x << (shift & 31)) + y

Types of an operand: u32 i32 f32 (32 bits, as), u64 i64 f64 (64 bits), u16 i16 f16 (the low half, or by op_sel the high
one), lanes (a bit for each lane in two scalar registers). Sources that are no operand of the text begin with @: @scc,
@vcc, @exec; "=f32" reads the destination. A destination "scc" is the scalar condition code.

What is not plain (memory, branches, lane movement) registers a builder with `custom`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.group import Group
from m3gen.emulator.program import Instruction

if TYPE_CHECKING:
    from m3gen.emulator.machine import Machine

Step = Callable[[Group], Any]
Builder = Callable[[Instruction, "Machine"], Step]

# Units, as the profile counts them.
SALU, SMEM, BRANCH, WAIT, BARRIER = "salu", "smem", "branch", "wait", "barrier"
VALU, TRANSCENDENTAL, MATRIX = "valu", "transcendental", "matrix"
LDS, VMEM, OTHER = "lds", "vmem", "other"


@dataclass(frozen=True, slots=True)
class Spec:
    """One mnemonic. `cycles` that it occupies its unit for one wave of 64; `section` names the encoding under which
    AMD's "Instinct MI300 (CDNA3)" and "CDNA4" ISA reference guides describe it."""

    mnemonic: str
    signature: str
    unit: str
    cycles: int
    section: str
    build: Builder


TABLE: dict[str, Spec] = {}


def custom(
    *mnemonics: str, unit: str, section: str, cycles: int = 4, signature: str = ""
) -> Callable[[Builder], Builder]:
    """Register a builder for mnemonics: it makes what runs on a group."""

    def register(build: Builder) -> Builder:
        for mnemonic in mnemonics:
            _add(Spec(mnemonic, signature, unit, cycles, section, build))
        return build

    return register


def instruction(
    mnemonic: str, signature: str, unit: str, section: str, cycles: int = 4
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of its sources."""
    from m3gen.emulator.operands import plain

    def register(meaning: Callable[..., Any]) -> Callable[..., Any]:
        def build(line: Instruction, machine: Machine) -> Step:
            return plain(line, signature, meaning)

        _add(Spec(mnemonic, signature, unit, cycles, section, build))
        return meaning

    return register


def several(
    meanings: Mapping[str, tuple[str, Callable[..., Any]]], unit: str, section: str, cycles: int = 4
) -> None:
    """Register mnemonics with a signature and a function each."""
    for mnemonic, (signature, meaning) in meanings.items():
        instruction(mnemonic, signature, unit, section, cycles)(meaning)


def find(line: Instruction) -> Spec:
    """`UnknownInstruction` naming the line."""
    import m3gen.emulator.isa  # noqa: F401 - fills the table

    try:
        return TABLE[line.mnemonic]
    except KeyError:
        raise UnknownInstruction(f"the emulator does not know {line.mnemonic}, {line.where}") from None


def _add(spec: Spec) -> None:
    if spec.mnemonic in TABLE:
        raise ValueError(f"{spec.mnemonic} is in the table twice")
    TABLE[spec.mnemonic] = spec
