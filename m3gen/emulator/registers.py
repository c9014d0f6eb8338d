"""Which registers an instruction looks at or writes: what must not be under way when it issues."""

from __future__ import annotations

from collections.abc import Iterable

from m3gen.emulator.group import Group
from m3gen.emulator.operand import Operand
from m3gen.emulator.program import Instruction

_NO_REGISTERS = ("s_waitcnt", "s_nop", "s_barrier", "s_endpgm")
_IN_ORDER = ("global_load_", "buffer_load_", "scratch_load_")


def touched(line: Instruction) -> int:
    """A set of registers as bits, see `Group.bit`. Wide operands count with all their registers."""
    if line.mnemonic in _NO_REGISTERS:
        return 0
    return _bits(line.operands)


def written_in_order(line: Instruction) -> int:
    """Of these, those that it only writes, and not before older loads of the same counter have: vector loads return
    in order (CDNA3 ISA, data dependency resolution, VM_CNT), so one may be under way to a register of another. Flat
    loads may not."""
    if not line.mnemonic.startswith(_IN_ORDER) or "lds" in line.mnemonic or line.modifiers.get("lds"):
        return 0
    target, *sources = line.operands
    return _bits([target]) & ~_bits(sources)


def _bits(operands: Iterable[Operand]) -> int:
    bits = 0
    for operand in operands:
        if operand.kind in ("v", "a", "s"):
            bits |= Group.bit(operand.kind, operand.index, operand.count)
    return bits
