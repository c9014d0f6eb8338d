"""`Group`: waves that run in step, each register one array over all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from m3gen.emulator.operand import VCC

U32, I32, F32 = np.uint32, np.int32, np.float32
U64, I64, F64 = np.uint64, np.int64, np.float64
Array = npt.NDArray[Any]
LANES = np.arange(64)
VECTORS, ACCUMULATORS, SCALARS = 256, 256, 128
_ZERO_LANES = np.zeros((1, 64), U32)


@dataclass(slots=True)
class Pending:
    """A memory operation under way. `complete(group, *data)` carries it out; `data` has a row for each wave.
    `writes` are bits of registers, see `Group.bit`; `ordered` is False for what may overtake."""

    complete: Callable[..., None]
    data: tuple[Array, ...]
    writes: int = 0
    ordered: bool = True

    def take(self, rows: Array) -> Pending:
        return Pending(self.complete, tuple(one[rows] for one in self.data), self.writes, self.ordered)


@dataclass(slots=True)
class Queue:
    """Operations of one counter, oldest first."""

    waiting: deque[Pending] = field(default_factory=deque)
    writes: int = 0

    def push(self, one: Pending) -> None:
        self.waiting.append(one)
        self.writes |= one.writes

    def drain(self, group: Group, left: int) -> None:
        """Complete the oldest until `left` are under way: the latest moment that a wait for `left` allows. What may
        overtake is complete for certain only when all are."""
        if left and any(not one.ordered for one in self.waiting):
            return
        while len(self.waiting) > left:
            one = self.waiting.popleft()
            one.complete(group, *one.data)
        self.writes = 0
        for one in self.waiting:
            self.writes |= one.writes


class Group:
    """State of `size` waves at one program counter.

    `v[0:256]` vector registers, `v[256:512]` accumulation registers: uint32 [size or 1, 64]. `s[0:128]` scalar
    registers: uint32 [size, 1] or [1, 1]. Arrays are never written in place, so registers may share them. `mask` is
    EXEC, bool [size, 64], `full` whether all of it is set; `scc` bool [size or 1, 1].

    `workgroup` [size] numbers the workgroup of each wave within the launch, `row` [size] its row of the shared
    memory, `wave` [size] the wave's number in its workgroup.
    """

    __slots__ = (
        "arrived",
        "full",
        "lgkm",
        "mask",
        "pc",
        "row",
        "s",
        "scc",
        "scratch",
        "size",
        "steps",
        "v",
        "vm",
        "wave",
        "workgroup",
    )

    def __init__(self, workgroup: Array, row: Array, wave: Array) -> None:
        self.size = len(workgroup)
        self.workgroup, self.row, self.wave = workgroup, row, wave
        self.pc = 0
        self.steps = 0
        self.v: list[Array] = [_ZERO_LANES] * (VECTORS + ACCUMULATORS)
        self.s: list[Array] = [np.zeros((1, 1), U32)] * SCALARS
        self.scc: Array = np.zeros((1, 1), bool)
        self.mask: Array = np.ones((self.size, 64), bool)
        self.full = True
        self.scratch: Array | None = None
        self.vm, self.lgkm = Queue(), Queue()
        self.arrived = False  # at a barrier

    @staticmethod
    def bit(kind: str, index: int, count: int = 1) -> int:
        """Of registers in a set of them."""
        first = index + {"v": 0, "a": VECTORS, "s": VECTORS + ACCUMULATORS}[kind]
        return ((1 << count) - 1) << first

    # vector registers

    def put(self, register: int, value: Array) -> None:
        """Write the lanes of EXEC; `value` of 32-bit elements, broadcast."""
        if value.dtype != U32:
            value = value.view(U32)
        self.v[register] = value if self.full else np.where(self.mask, value, self.v[register])

    def put_where(self, register: int, value: Array, lanes: Array) -> None:
        """Write the lanes of EXEC that are among `lanes`."""
        self.v[register] = np.where(self.mask & lanes, value.view(U32), self.v[register])

    def put64(self, register: int, value: Array) -> None:
        """The low and the high half of 64-bit elements."""
        value = value.view(U64)
        self.put(register, (value & U64(0xFFFFFFFF)).astype(U32))
        self.put(register + 1, (value >> U64(32)).astype(U32))

    def whole(self, register: int) -> Array:
        """A register as uint32 [size, 64], contiguous, not to be written."""
        return np.ascontiguousarray(spread(self.v[register], self.size))

    # scalar registers and masks

    def put_scalar(self, register: int, value: Array) -> None:
        self.s[register] = value if value.dtype == U32 else value.astype(U32)

    def put_scalar64(self, register: int, value: Array) -> None:
        """uint64 [size or 1, 1]."""
        self.s[register] = (value & U64(0xFFFFFFFF)).astype(U32)
        self.s[register + 1] = (value >> U64(32)).astype(U32)

    def scalar64(self, register: int) -> Array:
        return self.s[register].astype(U64) | (self.s[register + 1].astype(U64) << U64(32))

    def put_lanes(self, register: int, lanes: Array) -> None:
        """A mask of lanes, which are zero outside EXEC, into a pair of scalar registers."""
        low, high = words(spread(lanes, self.size) & self.mask)
        self.s[register], self.s[register + 1] = low, high

    def lanes(self, register: int) -> Array:
        """A pair of scalar registers as bool [size or 1, 64]."""
        return unpack(self.s[register], self.s[register + 1])

    def exec64(self) -> Array:
        low, high = words(self.mask)
        return low.astype(U64) | (high.astype(U64) << U64(32))

    def set_exec(self, mask: Array) -> None:
        """bool [size or 1, 64]."""
        self.mask = spread(mask, self.size)
        self.full = bool(self.mask.all())

    def enter(self, mask: Array) -> tuple[Array, bool]:
        """Take EXEC as it was when a memory operation was issued; what `mask` and `full` were."""
        before = self.mask, self.full
        if mask is not self.mask:
            self.set_exec(mask)
        return before

    def set_exec64(self, value: Array) -> None:
        self.set_exec(unpack((value & U64(0xFFFFFFFF)).astype(U32), (value >> U64(32)).astype(U32)))

    @property
    def vccz(self) -> Array:
        """bool [size or 1, 1]: no lane is set in VCC."""
        return (self.s[VCC] | self.s[VCC + 1]) == 0

    # waves that part and meet

    def take(self, rows: Array) -> Group:
        """The waves of `rows` as a group of their own."""
        part = Group(self.workgroup[rows], self.row[rows], self.wave[rows])
        part.pc, part.steps, part.arrived = self.pc, self.steps, self.arrived
        size, seen = self.size, {}

        def of(array: Array) -> Array:
            if len(array) != size or (size == 1 and array.shape[0] == 1):
                return array
            if id(array) not in seen:
                seen[id(array)] = array[rows]
            return seen[id(array)]

        part.v = [of(one) for one in self.v]
        part.s = [of(one) for one in self.s]
        part.scc = of(self.scc)
        part.set_exec(self.mask[rows])
        part.scratch = None if self.scratch is None else self.scratch[rows]
        for mine, theirs in ((self.vm, part.vm), (self.lgkm, part.lgkm)):
            for one in mine.waiting:
                theirs.push(one.take(rows))
        return part

    def can_meet(self, other: Group) -> bool:
        """Whether two groups at one place may go on as one."""
        idle = not (self.vm.waiting or self.lgkm.waiting or other.vm.waiting or other.lgkm.waiting)
        return idle and self.pc == other.pc and self.arrived == other.arrived

    def meet(self, other: Group) -> Group:
        """Both as one group."""

        def both(field: str) -> Array:
            return np.concatenate([getattr(self, field), getattr(other, field)])

        one = Group(both("workgroup"), both("row"), both("wave"))
        one.pc, one.steps, one.arrived = self.pc, max(self.steps, other.steps), self.arrived
        seen: dict[tuple[int, int], Array] = {}

        def joined(a: Array, b: Array) -> Array:
            if a is b and a.shape[0] == 1:
                return a
            if (id(a), id(b)) not in seen:
                width = max(a.shape[1], b.shape[1])
                parts = [np.broadcast_to(x, (n, width)) for x, n in ((a, self.size), (b, other.size))]
                seen[id(a), id(b)] = np.concatenate(parts)
            return seen[id(a), id(b)]

        one.v = [joined(a, b) for a, b in zip(self.v, other.v, strict=True)]
        one.s = [joined(a, b) for a, b in zip(self.s, other.s, strict=True)]
        one.scc = joined(self.scc, other.scc)
        one.set_exec(np.concatenate([self.mask, other.mask]))
        if self.scratch is not None and other.scratch is not None:
            one.scratch = np.concatenate([self.scratch, other.scratch])
        return one


def spread(value: Array, size: int) -> Array:
    """As [size, 64], not to be written; np.broadcast_to costs more than most instructions."""
    shape = value.shape
    if shape == (size, 64):
        return value
    if value.ndim != 2 or not value.flags.c_contiguous:
        return np.broadcast_to(value, (size, 64))
    down, across = value.strides
    return np.ndarray(
        (size, 64), value.dtype, value, 0, (0 if shape[0] == 1 else down, 0 if shape[1] == 1 else across)
    )


def words(mask: Array) -> tuple[Array, Array]:
    """bool [size, 64] to its low and high half, uint32 [size, 1] each."""
    packed = np.packbits(mask, axis=1, bitorder="little").view(U32)
    return packed[:, :1], packed[:, 1:]


def unpack(low: Array, high: Array) -> Array:
    """The inverse of `words`."""
    if low.shape != high.shape:
        low, high = np.broadcast_arrays(low, high)
    both = np.ascontiguousarray(np.concatenate([low, high], axis=1))
    return np.unpackbits(both.view(np.uint8), axis=1, bitorder="little").view(bool)
