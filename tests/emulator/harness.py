"""One instruction on chosen registers, as a program of one line; the answer lane by lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from m3gen.emulator.group import Group
from m3gen.emulator.machine import Machine
from m3gen.emulator.memory import Memory
from m3gen.emulator.program import parse

LANES = 64


def machine(text: str, arch: str = "gfx942", memory: Memory | None = None, **options: bool) -> Machine:
    """Of the lines of `text`, each an instruction or a label."""
    lines = [line if line.endswith(":") else f"\t{line}" for line in text.strip().splitlines()]
    return Machine(parse("\n".join(["kernel:", *lines, ".Lfunc_end0:"])), arch, memory or Memory(), **options)


class Registers:
    """A group of one wave with registers to set and read: `v[3] = [64 words]`, `s[4] = 7`."""

    def __init__(self, active: int = (1 << LANES) - 1) -> None:
        self.group = Group(np.array([0]), np.array([0]), np.array([0]))
        self.group.set_exec64(np.array([[active]], np.uint64))

    def vector(self, register: int, words: Sequence[int]) -> None:
        self.group.v[register] = np.array([words], np.uint32)

    def scalar(self, register: int, word: int) -> None:
        self.group.s[register] = np.array([[word]], np.uint32)

    def lanes(self, register: int) -> list[int]:
        return [int(word) for word in np.broadcast_to(self.group.v[register], (1, LANES))[0]]

    def word(self, register: int) -> int:
        return int(self.group.s[register].ravel()[0])


def run(
    line: str,
    vectors: Mapping[int, Sequence[int]] | None = None,
    scalars: Mapping[int, int] | None = None,
    *,
    arch: str = "gfx942",
    active: int = (1 << LANES) - 1,
    scc: bool = False,
) -> Registers:
    """The registers after one instruction."""
    registers = Registers(active)
    for register, words in (vectors or {}).items():
        registers.vector(register, words)
    for register, word in (scalars or {}).items():
        registers.scalar(register, word)
    registers.group.scc = np.array([[scc]])
    with np.errstate(all="ignore"):
        machine(line, arch)._steps[0](registers.group)
    return registers
