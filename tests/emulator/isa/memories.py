"""Instructions on a wave that has memory, LDS and scratch of its own; bytes in, bytes out."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from m3gen.emulator.machine import Machine
from m3gen.emulator.memory import Memory
from m3gen.emulator.shared import Shared
from m3gen.emulator.table import TABLE
from tests.emulator.harness import LANES, Registers, machine

M32 = (1 << 32) - 1
ALL = (1 << LANES) - 1
QUICK = settings(max_examples=6, deadline=None)
SEEDS = st.integers(0, 1 << 32)
# EXEC: all lanes, some, one, none.
MASKS = st.one_of(
    st.just(ALL), st.integers(0, ALL), st.integers(0, LANES - 1).map(lambda lane: 1 << lane), st.just(0)
)


class Wave(Registers):
    """One wave, `bytes_` of memory at `start`, `lds` bytes of LDS and `scratch` bytes for each lane, all random."""

    def __init__(self, rng: random.Random, active: int = ALL, *, memory: int = 0, lds: int = 0, scratch: int = 0):
        super().__init__(active)
        self.rng, self.active = rng, active
        self.memory = Memory()
        self.bytes_ = np.frombuffer(rng.randbytes(memory), np.uint8).copy()
        self.start = self.memory.register_array("memory", self.bytes_).start if memory else 0
        self.lds, self.scratch_bytes = Shared(1, lds), scratch
        if lds:
            self.lds.store(
                np.zeros(1, np.int64), np.zeros(1, np.int64), np.frombuffer(rng.randbytes(lds), np.uint8)[None]
            )
        if scratch:
            self.group.scratch = (
                np.frombuffer(rng.randbytes(LANES * scratch), np.uint8).copy().reshape(1, LANES, scratch)
            )
        for register in range(16):
            self.vector(register, self.words())

    def run(self, text: str, arch: str = "gfx950") -> Machine:
        """The lines of `text`, each completed before the next."""
        if self.scratch_bytes:
            text += f"\n.amdhsa_private_segment_fixed_size {self.scratch_bytes}"
        made = machine(text, arch, self.memory)
        made._shared = self.lds
        with np.errstate(all="ignore"):
            for step in made._steps:
                step(self.group)
                self.group.vm.drain(self.group, 0)
                self.group.lgkm.drain(self.group, 0)
        return made

    def words(self) -> list[int]:
        return [self.rng.getrandbits(32) for _ in range(LANES)]

    def wide(self, register: int, values: list[int]) -> None:
        """64 bits a lane."""
        self.vector(register, [value & M32 for value in values])
        self.vector(register + 1, [value >> 32 for value in values])

    def wide_scalar(self, register: int, value: int) -> None:
        self.scalar(register, value & M32)
        self.scalar(register + 1, value >> 32)

    def is_active(self, lane: int) -> bool:
        return bool(self.active >> lane & 1)

    @property
    def lds_bytes(self) -> bytes:
        return self.lds._bytes[: self.lds.size].tobytes()


def of_module(name: str) -> set[str]:
    """The mnemonics of the table that a module of the instruction set registers."""
    import m3gen.emulator.isa  # noqa: F401 - fills the table

    return {mnemonic for mnemonic, spec in TABLE.items() if spec.build.__module__ == f"m3gen.emulator.isa.{name}"}


def whole(words: list[int]) -> int:
    """Registers of one value, the lowest first."""
    return sum(word << 32 * number for number, word in enumerate(words))


def parts(value: int, count: int) -> list[int]:
    """The inverse of `whole`."""
    return [value >> 32 * number & M32 for number in range(count)]


def span(bank: str, first: int, count: int) -> str:
    """ "v[2:3]", or "v2"."""
    return f"{bank}[{first}:{first + count - 1}]" if count > 1 else f"{bank}{first}"
