"""`Dynamics`: what running a kernel's machine code once says of its time on a compute unit (AMD)."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.rungs import STOPPED

# Of `KernelFacts.extra`: the `Dynamics`, those with a term left out by the term, the name of the traces behind them.
DYNAMICS, WITHOUT, TRACE = "dynamics", "dynamics_without", "trace"
# Terms of a unit's time, and what `waves` calls the unit.
UNITS = {"issue": "valu", "matrix": "matrix", "shared": "lds"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: iterations of a program's loop, and for co-resident workgroups 1, 2, ... (`copies`) the clocks that
    they take together; how long each unit is busy with one of them, in clocks."""

    trips: float
    clocks: Mapping[int, float]
    busy: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Dynamics:
    """One or two samples, fewer iterations first. Clocks of another number of iterations are on the line through
    them; from one sample alone they are in proportion past a third of it, which is taken as what stands outside."""

    samples: tuple[Sample, ...]
    seconds: float  # what finding this out cost

    def clocks(self, copies: int, trips: float) -> tuple[float, float]:
        """Of `copies` workgroups on a compute unit: what does not depend on the iterations, and what does."""
        return _split([(one.trips, _at(one.clocks, copies)) for one in self.samples], trips)

    def busy(self, term: str, trips: float) -> float:
        """Clocks that one workgroup keeps the unit of a term in `UNITS`; of units that every SIMD has, the busiest."""
        return sum(_split([(one.trips, one.busy.get(UNITS[term], 0.0)) for one in self.samples], trips))

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it back."""
        found = asdict(self)
        found["samples"] = list(found["samples"])
        for sample in found["samples"]:
            sample["clocks"] = {str(copies): clocks for copies, clocks in sample["clocks"].items()}
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Dynamics:
        """Inverse of `to_dict`."""
        samples = tuple(
            Sample(
                one["trips"], {int(copies): clocks for copies, clocks in one["clocks"].items()}, dict(one["busy"])
            )
            for one in data["samples"]
        )
        return cls(samples, data["seconds"])


def dynamics_of(facts: KernelFacts, without: str = "") -> Dynamics | None:
    """What a worker found out about the kernel, or would have without a term; None when nothing ran it, or nothing
    simulated that."""
    data = facts.extra.get(WITHOUT, {}).get(without) if without else facts.extra.get(DYNAMICS)
    return Dynamics.from_dict(data) if data else None


def raw(facts: KernelFacts) -> KernelFacts:
    """Without what a run says, or that there was none: that depends on the constants and on the launch too, and one
    key may have several."""
    kept = {name: value for name, value in facts.extra.items() if name not in (DYNAMICS, WITHOUT, TRACE, STOPPED)}
    return replace(facts, extra=kept)


def _split(points: Sequence[tuple[float, float]], trips: float) -> tuple[float, float]:
    """What of the value at `trips` is fixed and what grows with them."""
    (first, least), (last, most) = points[0], points[-1]
    if last > first:
        slope = max(0.0, (most - least) / (last - first))
        return max(0.0, least - slope * first), slope * trips
    fixed = most if last <= 1 else most / 3
    return fixed, (most - fixed) * (trips / last if last else 0.0)


def _at(clocks: Mapping[int, float], copies: int) -> float:
    """Between numbers of workgroups that were simulated, linear; past the last one, in proportion."""
    known = sorted(clocks)
    place = bisect.bisect_left(known, copies)
    if place == len(known):
        return clocks[known[-1]] * copies / known[-1]
    if known[place] == copies or place == 0:
        return clocks[known[place]]
    low, high = known[place - 1], known[place]
    return clocks[low] + (clocks[high] - clocks[low]) * (copies - low) / (high - low)
