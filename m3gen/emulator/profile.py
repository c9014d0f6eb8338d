"""`Profile`: what a launch did, summed and named, and the traces of its waves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from m3gen.compiler.matrix import amd_cycles
from m3gen.emulator.group import I64, Array
from m3gen.emulator.program import Instruction, Program
from m3gen.emulator.recording import LINE_BYTES, Counts, Footprint, Recording
from m3gen.emulator.table import LDS, MATRIX, SMEM, VMEM, find

CLOCKS_PER_PASS = 4  # of the matrix unit
TRAFFIC = (
    *("global_read", "global_written", "global_atomic", "scalar_read", "scratch_read", "scratch_written"),
    *("shared_read", "shared_written", "shared_atomic"),
)


@dataclass(frozen=True, slots=True)
class Trace:
    """One wave: instruction numbers in order, int32 [n], and what each instance of a memory instruction did: `values`
    int32 [n, 5] as in `Access`."""

    workgroup: int
    wave: int
    instructions: Array
    values: Array

    def as_dict(self) -> dict[str, Any]:
        """`runs`: [first instruction, how many follow in program order]; `memory`: [position, bytes, lines, bytes of
        the LDS, passes, conflicts] of those positions that have any."""
        breaks = np.flatnonzero(np.diff(self.instructions) != 1) + 1
        starts = np.concatenate([[0], breaks]).astype(int)
        lengths = np.diff(np.concatenate([starts, [len(self.instructions)]]))
        places = np.flatnonzero(self.values.any(axis=1))
        return {
            "workgroup": self.workgroup,
            "wave": self.wave,
            "runs": np.stack([self.instructions[starts], lengths], axis=1).tolist(),
            "memory": np.concatenate([places[:, None], self.values[places]], axis=1).tolist(),
        }


@dataclass(frozen=True)
class Profile:
    """One launch of a kernel: `waves` a workgroup, `seconds` of executing it here."""

    kernel: str
    arch: str
    grid: tuple[int, int, int]
    waves: int
    program: Program
    recording: Recording
    seconds: float

    @property
    def counts(self) -> Counts:
        return self.recording.counts

    @property
    def footprint(self) -> Footprint:
        return self.recording.footprint

    @property
    def workgroups(self) -> int:
        x, y, z = self.grid
        return x * y * z

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The unit of each instruction."""
        return tuple(find(line).unit for line in self.program.instructions)

    @cached_property
    def cycles(self) -> Array:
        """Clocks that one wave's instance of each instruction holds its unit: int64 [instructions]."""
        return np.array([cycles(line, self.arch) for line in self.program.instructions], I64)

    @property
    def by_unit(self) -> dict[str, int]:
        """Instructions that waves executed."""
        return self._by(self.units, self.counts.waves)

    @cached_property
    def clocks(self) -> Array:
        """Clocks that each instruction held its unit, all waves together, int64 [instructions]: of the SIMD, but of the
        compute unit for the LDS, whose clocks are passes."""
        shared = np.array([unit == LDS for unit in self.units])
        passes = np.maximum(self.counts.passes, self.counts.waves)
        return np.where(shared, passes, self.counts.waves * self.cycles)

    @property
    def clocks_by_unit(self) -> dict[str, int]:
        """See `clocks`."""
        return self._by(self.units, self.clocks)

    @property
    def matrix_passes(self) -> int:
        """Of 4 clocks of the matrix unit of one SIMD."""
        return self.clocks_by_unit.get(MATRIX, 0) // CLOCKS_PER_PASS

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes asked for, by space and direction, see `TRAFFIC`."""
        found = dict.fromkeys(TRAFFIC, 0)
        for number, line in enumerate(self.program.instructions):
            if kind := space(line):
                found[kind] += int(
                    (self.counts.shared_bytes if kind[:6] == "shared" else self.counts.bytes)[number]
                )
                if kind == "global_read":  # loads that go to the LDS
                    found["shared_written"] += int(self.counts.shared_bytes[number])
        return found

    def _by(self, names: Sequence[str], values: Array) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, value in zip(names, values.tolist(), strict=True):
            if value:
                found[name] = found.get(name, 0) + value
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    # traces

    def trace(self, workgroup: int = 0, wave: int = 0) -> Trace:
        """`ValueError` when there is no such wave."""
        mine = self._paths.get((workgroup, wave))
        if mine is None:
            raise ValueError(f"no wave {wave} of workgroup {workgroup} in {self.workgroups} of {self.waves} waves")
        instructions = np.concatenate([self._orders[number] for number in mine])
        values = np.zeros((len(instructions), 5), np.int32)
        start = 0
        for number in mine:
            for access in self.recording.segments[number].accesses:
                values[start + access.position] += access.values[:, access.workgroups == workgroup].sum(axis=1)
            start += len(self._orders[number])
        return Trace(workgroup, wave, instructions, values)

    def behaviours(self) -> tuple[tuple[int, ...], ...]:
        """Workgroups whose waves executed the same instructions, wave for wave: the first of each is an example. Those
        that did not run are left out."""
        found: dict[tuple[bytes, ...], list[int]] = {}
        for workgroup in sorted({number for number, _ in self._paths}):
            key = []
            for wave in range(self.waves):
                digest = hashlib.sha256()
                for number in self._paths.get((workgroup, wave), ()):
                    digest.update(self._orders[number].data)
                key.append(digest.digest())
            found.setdefault(tuple(key), []).append(workgroup)
        return tuple(tuple(members) for members in found.values())

    @cached_property
    def _orders(self) -> list[Array]:
        return [np.array(segment.instructions, np.int32) for segment in self.recording.segments]

    @cached_property
    def _paths(self) -> dict[tuple[int, int], list[int]]:
        """The segments of each (workgroup, wave), in order."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, segment in enumerate(self.recording.segments):
            for workgroup in segment.workgroups.tolist():
                found.setdefault((workgroup, segment.wave), []).append(number)
        return found

    # for others

    def totals(self) -> dict[str, Any]:
        counts = self.counts
        return {
            "waves": self.workgroups * self.waves,
            "instructions": int(counts.waves.sum()),
            "by_unit": self.by_unit,
            "clocks_by_unit": self.clocks_by_unit,
            "matrix_passes": self.matrix_passes,
            "traffic": self.traffic,
            "lines_touched": int(counts.lines.sum()),
            "lines": self.footprint.lines,
            "lines_read": self.footprint.read_lines,
            "lines_written": self.footprint.written_lines,
            "workgroup_lines": int(self.footprint.workgroup_lines.sum()),
            "lds_passes": int(counts.passes.sum()),
            "lds_conflicts": int(counts.conflicts.sum()),
            "unwritten_shared": counts.unwritten_shared,
        }

    def as_dict(self, traces: Sequence[tuple[int, int]] | None = None) -> dict[str, Any]:
        """Everything as plain values. `traces`: (workgroup, wave) of those wanted; without it wave 0 of one workgroup
        of each behaviour. `instructions` are in address order; the numbers of a trace index them."""
        behaviours = self.behaviours()
        wanted = [(members[0], 0) for members in behaviours] if traces is None else traces
        return {
            "kernel": self.kernel,
            "arch": self.arch,
            "grid": list(self.grid),
            "waves_per_workgroup": self.waves,
            "seconds": self.seconds,
            "line_bytes": LINE_BYTES,
            "totals": self.totals(),
            "instructions": [self._instruction(number) for number in range(len(self.program.instructions))],
            "behaviours": [list(members) for members in behaviours],
            "traces": [self.trace(workgroup, wave).as_dict() for workgroup, wave in wanted],
        }

    def _instruction(self, number: int) -> Mapping[str, Any]:
        line, counts = self.program.instructions[number], self.counts
        found: dict[str, Any] = {
            "text": line.text,
            "source": line.source,
            "unit": self.units[number],
            "cycles": int(self.cycles[number]),
            "counter": counter(line),
        }
        for name in ("waves", "lanes", "bytes", "lines", "shared_bytes", "passes", "conflicts", "taken"):
            found[name] = int(getattr(counts, name)[number])
        if self.units[number] == "wait":
            found["outstanding"] = counts.outstanding[:, number].tolist()
            found["awaited"] = counts.awaited[:, number].tolist()
        return found


def cycles(line: Instruction, arch: str) -> int:
    """Clocks that one wave's instruction holds its unit; of the LDS and of memory: that it takes to issue."""
    spec = find(line)
    if spec.unit == MATRIX:
        return amd_cycles(arch, line.mnemonic.removesuffix("_1k"), line.text) or spec.cycles
    return spec.cycles


def counter(line: Instruction) -> str:
    """Which of "vm" and "lgkm" counts an instruction until it is done, or ""."""
    return {VMEM: "vm", LDS: "lgkm", SMEM: "lgkm"}.get(find(line).unit, "")


def space(line: Instruction) -> str:
    """One of `TRAFFIC` for what an instruction moves, or ""."""
    name = line.mnemonic
    if name.startswith("s_") and "_load_" in name:
        return "scalar_read"
    if name.startswith("ds_"):
        if name.startswith("ds_read"):
            return "shared_read"
        if name.startswith("ds_write"):
            return "shared_written"
        return "" if "permute" in name or "swizzle" in name else "shared_atomic"
    where, _, action = name.partition("_")
    if where not in ("global", "buffer", "flat", "scratch"):
        return ""
    kind = (
        "atomic" if action.startswith("atomic") else {"load": "read", "store": "written"}.get(action.split("_")[0])
    )
    return f"{'scratch' if where == 'scratch' else 'global'}_{kind}" if kind else ""
