"""The predicted rung: machine-code facts and the device's numbers in, microseconds and their terms out.

A launch is a grid of programs over compute units. `memory` is the roofline of its bytes; `schedule` is rounds of
co-resident programs. How long a round is, a simulation of the waves says where the machine code was run (AMD:
`dynamics`); elsewhere it is as long as the slowest of the units it keeps busy (`issue`, `matrix`, `shared`) or, when
one program's chain of loads and instructions is longer than all of these, `latency`. A last round that fills only
part of the device is charged whole; what that costs is `tail`. Before its first round streams anything a launch has
its `start`. The launches of an op follow each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from m3gen.compiler.facts import KernelFacts, LoopFacts
from m3gen.evaluate.dynamics import Dynamics, dynamics_of
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.prior import memory_us
from m3gen.evaluate.timing import TIMINGS, Timing
from m3gen.ops.base import Work
from m3gen.spec import Status
from m3gen.targets import Device

# How far memory and schedule overlap: the L^p norm of the two, between their sum (1) and their maximum (inf).
OVERLAP_NORM = 4.0
_SIMULATED = frozenset({"issue", "matrix", "shared", "latency", "conflicts", "simulation"})


TERMS = ("memory", "issue", "matrix", "shared", "latency", "launch", "tail")
# What `predict` can leave out, to see what it is worth; "conflicts" only where waves were simulated.
SWITCHES = (*TERMS, "conflicts", "residents", "simulation")


class Launched(Protocol):
    """What predicting reads of a `codegen.launch.Launch`."""

    @property
    def kernel(self) -> str: ...
    @property
    def programs(self) -> int: ...


def predict(
    launches: Sequence[Launched],
    facts: Sequence[KernelFacts],
    work: Sequence[Work],
    device: Device,
    *,
    without: frozenset[str] = frozenset(),
) -> Evaluation:
    """Microseconds of an op whose launches run one after the other on a cold cache.

    The three sequences are parallel. The interval is the relative one of the vendor's `Timing`; `terms` adds up
    each term over the launches, and `limit` names the largest of those that bound the time. IMPLAUSIBLE when the
    result is under the physical floor of the bytes at peak bandwidth. `without`: terms of `SWITCHES` to leave out,
    for ablations. What the simulation is to leave out it must have left out when it ran (`WITHOUT` of the facts'
    `extra`); else, and for two such terms, "simulation" is left out as well. Without "conflicts" those of the LDS cost
    nothing, without "residents" workgroups have compute units to themselves.
    """
    if unknown := without.difference(SWITCHES):
        raise ValueError(f"no such term: {', '.join(sorted(unknown))}; there are {', '.join(SWITCHES)}")
    timing = TIMINGS[device.architecture.vendor]
    terms: Counter[str] = Counter()
    total = floor = 0.0
    for launch, fact, item in zip(launches, facts, work, strict=True):
        if launch.kernel != item.kernel:
            raise ValueError(f"work of {item.kernel} given for a launch of {launch.kernel}")
        one = _Launch(launch, fact, item, device, timing, without)
        total += one.total_us
        floor += floor_us(item, device)
        terms.update(one.terms)
    bounds = {name: terms[name] for name in ("memory", "issue", "matrix", "shared", "latency", "launch")}
    return Evaluation(
        stage=Stage.PREDICTED,
        status=Status.OK if total > floor else Status.IMPLAUSIBLE,
        judge=timing.version,
        value_us=total,
        low_us=max(floor, total * (1 - timing.relative_interval)),
        high_us=total * (1 + timing.relative_interval),
        terms={name: round(value, 4) for name, value in terms.items()},
        limit=max(bounds, key=lambda name: bounds[name]),
        reason="" if total > floor else f"{total:.3f} us is under the floor of {floor:.3f} us",
    )


def floor_us(work: Work, device: Device) -> float:
    """What no kernel can be faster than: the streamed bytes at the memory's peak rate, in microseconds."""
    return work.streamed_bytes / device.memory_bytes_per_s * 1e6


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of `resident` programs on a CU: microseconds, how much of them before the loop, and how long each
    unit is busy."""

    time_us: float
    start_us: float
    issue_us: float
    matrix_us: float
    shared_us: float
    latency_us: float


class _Launch:
    """The terms of one launch."""

    def __init__(
        self,
        launch: Launched,
        facts: KernelFacts,
        work: Work,
        device: Device,
        timing: Timing,
        without: frozenset[str],
    ) -> None:
        self._facts, self._work, self._device, self._timing = facts, work, device, timing
        self._without = without
        self._dynamics = _dynamics(facts, without & _SIMULATED)
        resident = 1 if "residents" in without else max(1, facts.workgroups_per_cu)
        units = device.compute_units
        programs = max(1, round(launch.programs * (1 - work.idle)))
        full, rest = divmod(programs, resident * units)
        rounds = [(full, self._round(resident))] if full else []
        if rest:
            rounds.append((1, self._round(math.ceil(rest / units))))
        schedule = sum(count * r.time_us for count, r in rounds)
        # The same programs if they could be spread without a partial round.
        even = programs / (resident * units) * self._round(resident).time_us
        tail = max(0.0, schedule - even) if full else 0.0
        if "tail" in without:
            schedule -= tail
        memory = 0.0 if "memory" in without else memory_us(work, device, timing)
        start = rounds[0][1].start_us
        launch_us = 0.0 if "launch" in without else timing.launch_us
        norm = OVERLAP_NORM
        self.total_us = launch_us + start + (memory**norm + (schedule - start) ** norm) ** (1 / norm)
        self.terms = {
            "launch": launch_us,
            "start": start,
            "memory": memory,
            "issue": sum(count * r.issue_us for count, r in rounds),
            "matrix": sum(count * r.matrix_us for count, r in rounds),
            "shared": sum(count * r.shared_us for count, r in rounds),
            "latency": sum(count * r.latency_us for count, r in rounds),
            "tail": tail,
            "schedule": schedule,
        }

    def _round(self, resident: int) -> _Round:
        """`resident` programs on one CU from start to end."""
        return self._analytic(resident) if self._dynamics is None else self._simulated(resident, self._dynamics)

    def _simulated(self, resident: int, dynamics: Dynamics) -> _Round:
        """`latency` is what the busiest unit does not account for."""
        per_us, trips = self._device.clock_hz / 1e6, self._work.loop_trips
        fixed, varying = dynamics.clocks(resident, trips)
        time = fixed + varying
        # Whatever the line through two samples leaves before the loop, nothing streams before the first data are there.
        assert self._timing.latencies is not None
        first = self._timing.latencies.far if self._work.streamed_bytes else self._timing.latencies.coherent
        if "latency" in self._without:
            first = 0.0
        share = {"issue": 1.0, "matrix": 1.0, "shared": float(resident)}
        # Units of a SIMD: one workgroup's waves lie on as many SIMDs as they can.
        spread = max(1.0, resident * self._facts.num_warps / self._device.architecture.simds_per_cu) / max(
            1.0, self._facts.num_warps / self._device.architecture.simds_per_cu
        )
        share["issue"] = share["matrix"] = spread
        busy = {term: share[term] * dynamics.busy(term, trips) / per_us for term in share}
        return _Round(
            time_us=time / per_us,
            start_us=min(time, max(fixed, first)) / per_us,
            issue_us=busy["issue"],
            matrix_us=busy["matrix"],
            shared_us=busy["shared"],
            latency_us=max(0.0, time / per_us - max(busy.values())),
        )

    def _analytic(self, resident: int) -> _Round:
        facts, work, arch = self._facts, self._work, self._device.architecture
        waves = resident * facts.num_warps
        waves_per_simd = waves / arch.simds_per_cu
        per_us = self._device.clock_hz / 1e6
        loop = _main_loop(facts)
        trips = work.loop_trips if loop else 0.0
        inside = _Body.of_loop(loop) if loop else _Body()
        outside = _Body.of_kernel(facts).minus(inside)

        def spread(cost_outside: float, cost_inside: float) -> float:
            return (cost_outside + trips * cost_inside) / per_us

        # A SIMD issues for its waves in turn; a wave alone cannot share its SIMD with anyone.
        share = max(1.0, waves_per_simd)
        issue = share * spread(self._issue(outside), self._issue(inside))
        matrix = share * spread(outside.matrix_cycles, inside.matrix_cycles)
        lanes = waves * arch.wave_size
        shared = spread(outside.shared_bytes, inside.shared_bytes) * lanes / arch.shared_bytes_per_clock
        # Before the loop the query and the sequence length, after it the stores.
        start = self._chain(outside) / per_us + 2 * self._timing.memory_latency_us
        latency = trips * self._trip_us(self._chain(inside) / per_us) + start
        busy = {"issue": issue, "matrix": matrix, "shared": shared, "latency": latency}
        for name in self._without & busy.keys():
            busy[name] = 0.0
        time = max(busy.values())
        return _Round(
            time_us=time,
            start_us=min(start, time),
            issue_us=busy["issue"],
            matrix_us=busy["matrix"],
            shared_us=busy["shared"],
            latency_us=busy["latency"],
        )

    def _trip_us(self, chain_us: float) -> float:
        """One iteration of one program alone: its loads, then `chain_us` of instructions, as far as the pipeline
        does not lay them over each other."""
        work, t = self._work, self._timing
        lookups = work.lookups * t.lookup_latency_us
        if not work.loads_ahead:
            return lookups + work.load_waits * t.memory_latency_us + chain_us
        return lookups / work.loads_ahead + max(t.memory_latency_us / work.loads_ahead, chain_us)

    def _issue(self, body: _Body) -> float:
        """Cycles one wave keeps its SIMD's vector unit."""
        t = self._timing
        return (
            body.vector * t.vector_cycles
            + body.convert * t.convert_cycles
            + body.transcendental * t.transcendental_cycles
        )

    def _chain(self, body: _Body) -> float:
        """Cycles one wave needs alone, loads apart: every instruction in order."""
        t = self._timing
        return (
            body.vector * (t.vector_cycles + t.dependent_cycles)
            + body.convert * (t.convert_cycles + t.dependent_cycles)
            + body.transcendental * t.transcendental_cycles
            + body.scalar * t.scalar_cycles
            + body.shared * t.shared_cycles
            + body.matrix_cycles
            + body.waits * t.wait_cycles
            + body.barriers * t.barrier_cycles
        )


def _dynamics(facts: KernelFacts, without: frozenset[str]) -> Dynamics | None:
    if len(without) > 1 or "simulation" in without:
        return None
    return dynamics_of(facts, *without)


@dataclass(frozen=True, slots=True)
class _Body:
    """Instruction counts of one wave, by what they occupy."""

    vector: float = 0
    convert: float = 0
    transcendental: float = 0
    scalar: float = 0
    shared: float = 0
    matrix_cycles: float = 0
    shared_bytes: float = 0  # per lane
    waits: float = 0
    barriers: float = 0

    @classmethod
    def of_loop(cls, loop: LoopFacts) -> _Body:
        moved = loop.shared_read_bytes_per_lane + loop.shared_write_bytes_per_lane
        return cls._of_mix(loop.mix, loop.matrix_cycles, moved)

    @classmethod
    def of_kernel(cls, facts: KernelFacts) -> _Body:
        loop = _main_loop(facts)
        # Facts count shared bytes per loop alone; what is outside the loop is small and taken as none.
        moved = loop.shared_read_bytes_per_lane + loop.shared_write_bytes_per_lane if loop else 0
        return cls._of_mix(facts.mix, facts.matrix_cycles, moved)

    @classmethod
    def _of_mix(cls, mix: Mapping[str, int], matrix_cycles: float, shared_bytes: float) -> _Body:
        count = Counter(mix)
        return cls(
            vector=sum(count[unit] for unit in ("vector", "permute", "load", "store", "spill", "atomic")),
            convert=count["convert"],
            transcendental=count["transcendental"],
            scalar=count["scalar"] + count["branch"],
            shared=count["shared_read"] + count["shared_write"],
            matrix_cycles=matrix_cycles,
            shared_bytes=shared_bytes,
            waits=count["wait"],
            barriers=count["barrier"],
        )

    def minus(self, other: _Body) -> _Body:
        names = self.__dataclass_fields__
        return _Body(**{name: max(0.0, getattr(self, name) - getattr(other, name)) for name in names})


def _main_loop(facts: KernelFacts) -> LoopFacts | None:
    """The loop that streams the cache: of those with global loads, the one with most bytes, then most work."""
    streaming = [loop for loop in facts.loops if loop.load_bytes_per_lane]
    return max(
        streaming, key=lambda loop: (loop.load_bytes_per_lane, -loop.depth, loop.instructions), default=None
    )
