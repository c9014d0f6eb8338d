"""Branches, barriers, waits and what has no effect here. Section SOPP and SOP1 of the ISA guides."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.group import U64, Array, Group, Pending
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import BARRIER, BRANCH, OTHER, SALU, SMEM, WAIT, Step, custom

_COUNTER = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")

# What each condition asks of a group: a truth for each wave, bool [size or 1, 1].
_CONDITIONS: dict[str, Any] = {
    "scc0": lambda g: ~g.scc,
    "scc1": lambda g: g.scc,
    "vccz": lambda g: g.vccz,
    "vccnz": lambda g: ~g.vccz,
    "execz": lambda g: ~g.mask.any(axis=1, keepdims=True),
    "execnz": lambda g: g.mask.any(axis=1, keepdims=True),
}


@custom(
    "s_branch", *(f"s_cbranch_{name}" for name in _CONDITIONS), unit=BRANCH, section="SOPP", signature=": label"
)
def _branch(line: Instruction, machine: Any) -> Step:
    """Returns, where it branches: the target, and which waves take it (None: all)."""
    label = line.operands[0].text
    try:
        target = machine.program.labels[label]
    except KeyError:
        raise UnknownInstruction(f"there is no label {label}, {line.where}") from None
    if line.mnemonic == "s_branch":
        return lambda group: (target, None)
    condition = _CONDITIONS[line.mnemonic.removeprefix("s_cbranch_")]

    def step(group: Group) -> Any:
        taken: Array = condition(group)
        if taken.all():
            return target, None
        if not taken.any():
            return None
        return target, taken[:, 0]

    return step


@custom("s_getpc_b64", unit=SALU, section="SOP1", signature="u64 :")
def _program_counter(line: Instruction, machine: Any) -> Step:
    """Addresses of code are instruction numbers here; what is added to them is a difference of labels."""
    target = line.operands[0].index

    def step(group: Group) -> None:
        group.put_scalar64(target, np.full((group.size, 1), group.pc, U64))

    return step


@custom("s_setpc_b64", unit=BRANCH, section="SOP1", signature=": u64")
def _jump(line: Instruction, machine: Any) -> Step:
    read = reader(line.operands[0], "u64")

    def step(group: Group) -> Any:
        targets = np.unique(read(group))
        if len(targets) > 1:
            raise UnknownInstruction(f"waves that jump to different places, {line.where}")
        return int(targets[0]), None

    return step


def counters(line: Instruction) -> tuple[int | None, int | None]:
    """How many operations of vmcnt and of lgkmcnt a wait leaves under way; None: it does not look at them."""
    text = line.operands[0].text
    counts = {name: int(value) for name, value in _COUNTER.findall(text)}
    if not counts and text.strip() != "0":
        raise UnknownInstruction(f"a wait for {text!r}, {line.where}")
    return counts.get("vmcnt", None if counts else 0), counts.get("lgkmcnt", None if counts else 0)


@custom("s_waitcnt", unit=WAIT, section="SOPP", signature=": counters")
def _wait(line: Instruction, machine: Any) -> Step:
    vm, lgkm = counters(line)

    def step(group: Group) -> None:
        if vm is not None:
            group.vm.drain(group, vm)
        if lgkm is not None:
            group.lgkm.drain(group, lgkm)

    return step


@custom("s_barrier", unit=BARRIER, section="SOPP")
def _barrier(line: Instruction, machine: Any) -> Step:
    return lambda group: "barrier"


@custom("s_endpgm", unit=OTHER, section="SOPP")
def _end(line: Instruction, machine: Any) -> Step:
    return lambda group: "end"


@custom(
    "s_nop", "s_sleep", "s_setprio", "s_sethalt", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_setreg_b32",
    "s_setreg_imm32_b32", "buffer_inv", "buffer_wbl2",
    unit=OTHER, section="SOPP",
)  # fmt: skip
def _nothing(line: Instruction, machine: Any) -> Step:
    return lambda group: None


@custom("s_memtime", "s_memrealtime", unit=SMEM, section="SMEM", signature="u64 :")
def _clock(line: Instruction, machine: Any) -> Step:
    """Comes with the scalar loads: there is a wait for it. Counts branches."""
    target = line.operands[0].index

    def complete(group: Group) -> None:
        group.put_scalar64(target, np.full((1, 1), group.steps, U64))

    def step(group: Group) -> None:
        machine.issue(group, group.lgkm, Pending(complete, (), Group.bit("s", target, 2), ordered=False))

    return step
