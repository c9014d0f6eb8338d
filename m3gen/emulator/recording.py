"""What a machine notes down of a launch: numbers for every instruction, the memory touched, who executed what."""

from __future__ import annotations

from dataclasses import dataclass, field

from m3gen.emulator.group import Array

LINE_BYTES = 128  # a line of the L2 of CDNA3 and CDNA4


@dataclass(frozen=True, slots=True)
class Counts:
    """int64 arrays with an element for each instruction of the program, summed over the waves that executed it.

    waves: how many did; lanes: those that EXEC let act. bytes: asked of memory, scalar and scratch accesses
    included; lines: of 128 bytes that these touch, counted once for each instruction of a wave. shared_bytes: asked of
    the LDS; passes: that it takes for them, conflicts: how many of these would not be needed, see `banks`. taken:
    waves that a branch moved. outstanding, awaited: [2, instructions], for vmcnt and lgkmcnt: operations under way when
    a wait is reached, and those of them that it waits for.
    """

    waves: Array
    lanes: Array
    bytes: Array
    lines: Array
    shared_bytes: Array
    passes: Array
    conflicts: Array
    taken: Array
    outstanding: Array
    awaited: Array
    unwritten_shared: int  # bytes of the LDS that were read before anybody wrote them


@dataclass(frozen=True, slots=True)
class Footprint:
    """Different lines of 128 bytes that the launch touched: what must come from memory at least, and go there.
    workgroup_lines: int64 [workgroups], those of each workgroup."""

    read_lines: int
    written_lines: int
    lines: int
    workgroup_lines: Array


@dataclass(frozen=True, slots=True)
class Access:
    """Of the instruction at `position` of a segment, for some of its workgroups: values int32 [5, workgroups]: bytes,
    lines, bytes of the LDS, passes, conflicts."""

    position: int
    workgroups: Array
    values: Array


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions that one wave of each of some workgroups executed in step."""

    wave: int
    workgroups: Array
    instructions: list[int] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recording:
    """Of one launch of a machine."""

    counts: Counts
    footprint: Footprint
    segments: tuple[Segment, ...]
