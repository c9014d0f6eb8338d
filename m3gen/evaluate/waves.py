"""`simulate`: clocks that the waves of co-resident workgroups keep a compute unit, from traces of their machine code.

Each wave issues in order, one instruction in four clocks at most. Waves share what their instructions need: the
scalar, vector and matrix units of their SIMD, and the LDS and the path to memory of the compute unit. Memory answers
after a latency; `s_waitcnt` waits for the counters, `s_barrier` for the waves of the workgroup. What memory could
deliver in that time to all compute units together is no part of this: the roofline is.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from m3gen.emulator.group import Group
from m3gen.emulator.isa.control import counters
from m3gen.emulator.profile import cycles
from m3gen.emulator.program import Instruction, instruction
from m3gen.emulator.registers import touched
from m3gen.emulator.table import find
from m3gen.evaluate.timing import Latencies
from m3gen.evaluate.trace import Trace, WaveTrace

_SIMDS = 4
_ISSUE = 4  # clocks between two instructions of one wave, assumed: the four SIMDs take turns, as in GCN
# Units, and the number of each: what every SIMD has, what there is once.
_UNITS = ("valu",) * _SIMDS + ("salu",) * _SIMDS + ("matrix",) * _SIMDS + ("lds", "vmem")
_VALU, _SALU, _MATRIX, _LDS, _VMEM = (_UNITS.index(name) for name in ("valu", "salu", "matrix", "lds", "vmem"))
_START = 97  # clocks between the starts of workgroups, so that they do not run in step


@dataclass(frozen=True, slots=True)
class Simulated:
    """Clocks of `copies` workgroups on one compute unit, from the first start to the last end, and how long each unit
    was busy meanwhile (of units that each SIMD has: the busiest one)."""

    clocks: float
    busy: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction as the simulation sees it."""

    unit: str  # as the profile calls it, transcendentals among "valu"
    hold: float
    registers: int
    writes: int  # of the matrix unit: its result
    coherent: bool  # past the caches that other compute units do not see
    wait: tuple[int | None, int | None] | None = None


@dataclass(slots=True)
class _Wave:
    """`at` in its trace; `results`: (registers, clock) of matrix products under way."""

    steps: Sequence[int]
    passes: Sequence[int]
    conflicts: Sequence[int]
    lines: Sequence[int]
    workgroup: int
    simd: int
    at: int = 0
    vm: deque[float] = field(default_factory=deque)
    lgkm: deque[float] = field(default_factory=deque)
    results: list[tuple[int, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Workgroup:
    """A workgroup's waves as the simulation sees them: instructions of the program, and for each wave its trace."""

    steps: Sequence[_Step]
    waves: Sequence[tuple[list[int], list[int], list[int], list[int]]]
    """Instructions, LDS passes, conflicts among them, lines of memory."""

    @classmethod
    def of(cls, trace: Trace) -> Workgroup:
        return cls(
            [_step(instruction(text), trace.arch) for text in trace.code], [_wave(one) for one in trace.waves]
        )


def simulate(one: Workgroup, copies: int, latencies: Latencies, free: frozenset[str] = frozenset()) -> Simulated:
    """`copies` of a workgroup on one compute unit. `free`: units of `busy` that take no time, for ablations."""
    waves = [
        _Wave(steps, passes, conflicts, lines, copy, (copy * len(one.waves) + number) % _SIMDS)
        for copy in range(copies)
        for number, (steps, passes, conflicts, lines) in enumerate(one.waves)
    ]
    return _Unit(one.steps, waves, latencies, free).run()


def _wave(trace: WaveTrace) -> tuple[list[int], list[int], list[int], list[int]]:
    instructions = [number for first, count in trace.runs for number in range(first, first + count)]
    lines, passes, conflicts = ([0] * len(instructions) for _ in range(3))
    for position, *values in trace.memory:
        lines[position], passes[position], conflicts[position] = values
    return instructions, passes, conflicts, lines


def _step(line: Instruction, arch: str) -> _Step:
    unit = find(line).unit
    hold = float(cycles(line, arch))
    writes = _destination(line) if unit == "matrix" else 0
    wait = counters(line) if unit == "wait" else None
    if line.mnemonic == "s_nop":
        hold = _ISSUE * (1 + line.operands[0].value)
    unit = "valu" if unit == "transcendental" else unit
    return _Step(unit, hold, touched(line), writes, "sc0" in line.modifiers, wait)


def _destination(line: Instruction) -> int:
    """The registers that an instruction's first operand names, as bits."""
    target = line.operands[0]
    return Group.bit(target.kind, target.index, target.count) if target.kind in ("v", "a") else 0


class _Unit:
    """One compute unit and its waves. A unit serves in the order in which waves come to it."""

    def __init__(
        self, steps: Sequence[_Step], waves: Sequence[_Wave], latencies: Latencies, free: frozenset[str]
    ) -> None:
        self._steps = [replace(step, hold=0.0) if step.unit in free else step for step in steps]
        self._waves, self._latencies = waves, latencies
        self._lds_is_free = "lds" in free
        self._free = [0.0] * len(_UNITS)
        self._busy = [0.0] * len(_UNITS)
        self._arrived: dict[int, list[int]] = {}
        self._left: dict[int, int] = {}
        for wave in waves:
            self._left[wave.workgroup] = self._left.get(wave.workgroup, 0) + 1

    def run(self) -> Simulated:
        ready = [(float(_START * wave.workgroup), number) for number, wave in enumerate(self._waves)]
        heapq.heapify(ready)
        end = 0.0
        while ready:
            now, number = heapq.heappop(ready)
            while True:
                wave = self._waves[number]
                if wave.at == len(wave.steps):
                    end = max(end, now)
                    self._left[wave.workgroup] -= 1
                    break
                step = self._steps[wave.steps[wave.at]]
                following = self._issue(wave, step, now)
                wave.at += 1
                if step.unit == "barrier":
                    self._arrived.setdefault(wave.workgroup, []).append(number)
                    break
                now, number = heapq.heappushpop(ready, (following, number))
            for released in self._released(wave.workgroup):
                heapq.heappush(ready, (now + _ISSUE, released))
        busy: dict[str, float] = {}
        for unit, clocks in zip(_UNITS, self._busy, strict=True):
            if clocks:
                busy[unit] = max(busy.get(unit, 0.0), clocks)
        return Simulated(end, busy)

    def _released(self, workgroup: int) -> list[int]:
        """The waves at a barrier, when no other wave of the workgroup is on its way there."""
        arrived = self._arrived.get(workgroup, [])
        if len(arrived) < self._left[workgroup]:
            return []
        self._arrived[workgroup] = []
        return arrived

    def _issue(self, wave: _Wave, step: _Step, now: float) -> float:
        """Take the unit; the clock at which the wave may go on."""
        unit, late = step.unit, self._latencies
        if wave.results:
            now = self._depends(wave, step, now)
        if unit == "valu":
            return self._take(_VALU + wave.simd, now, step.hold) + step.hold
        if unit == "matrix":
            start = self._take(_MATRIX + wave.simd, now, step.hold)
            wave.results.append((step.writes, start + step.hold))
            return start + _ISSUE
        if unit == "lds":
            least = wave.passes[wave.at] - wave.conflicts[wave.at]
            hold = max(least + late.conflict * wave.conflicts[wave.at], _ISSUE)
            if self._lds_is_free:
                hold = 0.0
            wave.lgkm.append(_last(wave.lgkm, self._take(_LDS, now, hold) + hold + late.shared))
            return now + _ISSUE
        if unit == "vmem":
            lines = wave.lines[wave.at]
            hold = max(lines, _ISSUE)
            latency = late.near if lines <= 1 else late.coherent if step.coherent else late.far
            wave.vm.append(_last(wave.vm, self._take(_VMEM, now, hold) + hold + latency))
            return now + _ISSUE
        if unit in ("salu", "branch", "smem"):
            start = self._take(_SALU + wave.simd, now, _ISSUE)
            if unit == "smem":
                wave.lgkm.append(_last(wave.lgkm, start + late.scalar))
            return start + (late.branch if unit == "branch" else _ISSUE)
        if step.wait is not None:
            for queue, left in zip((wave.vm, wave.lgkm), step.wait, strict=True):
                if left is not None:
                    while len(queue) > left:
                        now = max(now, queue.popleft())
            return now + _ISSUE
        return now + step.hold

    def _depends(self, wave: _Wave, step: _Step, now: float) -> float:
        """When the matrix products that the step touches are there. One that goes on summing into the registers of
        the product before waits for its passes alone."""
        latency = self._latencies.matrix
        start = now
        for registers, clock in wave.results:
            if registers & step.registers:
                start = max(start, clock if step.writes == registers else clock + latency)
        wave.results = [one for one in wave.results if one[1] + latency > start]
        return start

    def _take(self, unit: int, now: float, hold: float) -> float:
        """When the unit starts on what came to it at `now`."""
        start = self._free[unit]
        if start < now:
            start = now
        self._free[unit] = start + hold
        self._busy[unit] += hold
        return start


def _last(queue: deque[float], done: float) -> float:
    """Operations of one counter complete in order."""
    return max(done, queue[-1]) if queue else done
