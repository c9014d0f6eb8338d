"""`Recorder`: what a machine notes down while it runs, as a `Recording` at the end.

Waves that run in step are noted down once: a `Segment` is what a group did between two changes of its members.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from m3gen.emulator.banks import passes
from m3gen.emulator.group import I64, Array, Group, Pending
from m3gen.emulator.isa.control import counters
from m3gen.emulator.program import Instruction
from m3gen.emulator.recording import LINE_BYTES, Access, Counts, Footprint, Recording, Segment
from m3gen.emulator.table import WAIT, Spec

_SHIFT = LINE_BYTES.bit_length() - 1
_LINE_BITS = 42  # of a line's number; the workgroup's stands above
_MOST_KEYS = 1 << 22
_NOWHERE = np.iinfo(I64).max


class Recorder:
    """Of one launch. The machine calls `begin` and `step` for what it executes, `issued` for a memory operation, and
    the others for the accesses of one when it is carried out."""

    def __init__(self, instructions: Sequence[Instruction], specs: Sequence[Spec], arch: str) -> None:
        self._arch, self._size = arch, len(instructions)
        self._index = {line.line: number for number, line in enumerate(instructions)}
        self._waits = [
            counters(line) if spec.unit == WAIT else None for line, spec in zip(instructions, specs, strict=True)
        ]
        self._segments: list[Segment] = []
        self._now = Segment(0, np.zeros(0, I64))
        self._instance = (self._now, 0)
        self._idle, self._taken = np.zeros(self._size, I64), np.zeros(self._size, I64)
        self._outstanding, self._awaited = np.zeros((2, self._size), I64), np.zeros((2, self._size), I64)
        self._sums = np.zeros((5, self._size), I64)  # bytes, lines, bytes of the LDS, passes, conflicts
        self._read, self._written = list[Array](), list[Array]()

    def begin(self, group: Group) -> None:
        """The machine turns to a group."""
        self._now = Segment(int(group.wave[0]), group.workgroup)
        self._segments.append(self._now)

    def step(self, group: Group, at: int) -> None:
        """The group is about to execute an instruction."""
        self._now.instructions.append(at)
        if not group.full:
            self._idle[at] += group.mask.size - np.count_nonzero(group.mask)
        if (wait := self._waits[at]) is not None:
            for number, (queue, left) in enumerate(zip((group.vm, group.lgkm), wait, strict=True)):
                if left is not None:
                    waiting = len(queue.waiting)
                    self._outstanding[number, at] += group.size * waiting
                    self._awaited[number, at] += group.size * max(0, waiting - left)

    def branched(self, at: int, waves: int) -> None:
        self._taken[at] += waves

    def issued(self, one: Pending) -> None:
        """By the instruction of the last `step`: its accesses are noted down as this instance's."""
        instance, complete = (self._now, len(self._now.instructions) - 1), one.complete

        def recorded(group: Group, *data: Array) -> None:
            self._instance = instance
            complete(group, *data)

        one.complete = recorded

    # accesses: where int64 [n, lanes], active bool of that shape

    def memory(
        self,
        group: Group,
        line: Instruction,
        where: Array,
        active: Array,
        width: int,
        *,
        reads: bool,
        writes: bool,
    ) -> None:
        last = (where + (width - 1)) >> _SHIFT
        lines = where >> _SHIFT
        if (lines != last).any():
            lines, active_ = np.concatenate([lines, last], axis=1), np.concatenate([active, active], axis=1)
        else:
            active_ = active
        lines = np.where(active_, lines, _NOWHERE)
        lines.sort(axis=1)
        fresh = lines != _NOWHERE
        fresh[:, 1:] &= lines[:, 1:] != lines[:, :-1]
        keys = (lines | (group.workgroup[:, None] << _LINE_BITS))[fresh]
        for wanted, kept in ((reads, self._read), (writes, self._written)):
            if wanted:
                kept.append(keys)
                if sum(map(len, kept)) > _MOST_KEYS:
                    kept[:] = [_distinct(np.concatenate(kept))]
        self._note(group, line, width * np.count_nonzero(active, axis=1), lines=fresh.sum(axis=1))

    def scratch(self, group: Group, line: Instruction, active: Array, width: int) -> None:
        self._note(group, line, width * np.count_nonzero(active, axis=1))

    def shared(
        self, group: Group, line: Instruction, where: Array, active: Array, width: int, *, write: bool
    ) -> None:
        same = (where == where[:1]).all() and (active == active[:1]).all()
        rows = slice(0, 1) if same else slice(None)  # most accesses are at the same place in every workgroup
        needed, least = passes(self._arch, where[rows], active[rows], width, write=write)
        bytes_ = np.broadcast_to(width * np.count_nonzero(active[rows], axis=1), group.size)
        needed, least = np.broadcast_to(needed, group.size), np.broadcast_to(least, group.size)
        self._note(group, line, shared_bytes=bytes_, passes=needed, conflicts=needed - least)

    def _note(
        self,
        group: Group,
        line: Instruction,
        bytes_: Array | int = 0,
        *,
        lines: Array | int = 0,
        shared_bytes: Array | int = 0,
        passes: Array | int = 0,
        conflicts: Array | int = 0,
    ) -> None:
        segment, position = self._instance
        values = np.empty((5, group.size), I64)
        for number, value in enumerate((bytes_, lines, shared_bytes, passes, conflicts)):
            values[number] = value
        self._sums[:, self._index[line.line]] += values.sum(axis=1)
        segment.accesses.append(Access(position, group.workgroup, values.astype(np.int32)))

    def recording(self, unwritten_shared: int) -> Recording:
        waves = np.zeros(self._size, I64)
        for segment in self._segments:
            waves += len(segment.workgroups) * np.bincount(segment.instructions, minlength=self._size)
        bytes_, lines, shared_bytes, passed, conflicts = self._sums
        counts = Counts(
            waves=waves,
            lanes=64 * waves - self._idle,
            bytes=bytes_,
            lines=lines,
            shared_bytes=shared_bytes,
            passes=passed,
            conflicts=conflicts,
            taken=self._taken,
            outstanding=self._outstanding,
            awaited=self._awaited,
            unwritten_shared=unwritten_shared,
        )
        return Recording(counts, _footprint(self._read, self._written), tuple(self._segments))


def _footprint(read: list[Array], written: list[Array]) -> Footprint:
    nothing = np.zeros(0, I64)
    keys = [_distinct(np.concatenate([nothing, *kept])) for kept in (read, written)]
    lines = [_distinct(each & ((1 << _LINE_BITS) - 1)) for each in keys]
    by_workgroup = _distinct(np.concatenate(keys)) >> _LINE_BITS
    return Footprint(
        read_lines=len(lines[0]),
        written_lines=len(lines[1]),
        lines=len(_distinct(np.concatenate(lines))),
        workgroup_lines=np.bincount(by_workgroup) if len(by_workgroup) else nothing,
    )


def _distinct(keys: Array) -> Array:
    """Each once, in order. `np.unique` hashes integers, which takes many times as long on this many."""
    keys = np.sort(keys)
    fresh = np.ones(len(keys), bool)
    fresh[1:] = keys[1:] != keys[:-1]
    return keys[fresh]
