"""`Recorded`: a space of which every config has been timed, and what each of them took."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from m3gen.space import Choice, Config, Constraint, Ordinal, Parameter, Space, Value

Point = tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Recorded:
    """`milliseconds` by id of `space`, None where the config failed, which is why in `failures`."""

    kernel: str
    device: str
    space: Space
    milliseconds: tuple[float | None, ...]
    failures: Mapping[int, str]

    @property
    def name(self) -> str:
        return f"{self.kernel}-{self.device}"

    @property
    def optimum(self) -> float:
        """The least time of all, in milliseconds."""
        return min(value for value in self.milliseconds if value is not None)

    def by_config(self) -> dict[Config, float | None]:
        """What is known of every config, as a `Prior` holds it of a sibling."""
        return dict(zip(self.space, self.milliseconds, strict=True))


def recorded(
    kernel: str,
    device: str,
    parameters: Mapping[str, Sequence[Value]],
    points: Mapping[Point, float | str],
) -> Recorded:
    """A recorded space of its points: values in the order of `parameters` -> milliseconds, or why it failed.

    What is no point of `points` is no valid config. `ValueError` for a point outside the parameters, for names
    that repeat or are no identifiers, and when no point has a time.
    """
    declared = [_parameter(name, values) for name, values in parameters.items()]
    places = {point: _places(declared, point) for point in points}
    outcomes = [points[point] for point in sorted(points, key=places.__getitem__)]  # as ids are ordered
    if not any(isinstance(outcome, float) for outcome in outcomes):
        raise ValueError("no config has a time")
    times = tuple(outcome if isinstance(outcome, float) else None for outcome in outcomes)
    failures = {id: outcome for id, outcome in enumerate(outcomes) if isinstance(outcome, str)}
    return Recorded(kernel, device, Space(declared, list(_rules(declared, points))), times, failures)


def _places(declared: Sequence[Parameter], point: Point) -> tuple[int, ...]:
    if len(point) != len(declared):
        raise ValueError(f"a config has {len(point)} values for {len(declared)} parameters: {point}")
    return tuple(parameter.index(value) for parameter, value in zip(declared, point, strict=True))


def _parameter(name: str, values: Sequence[Value]) -> Parameter:
    """Numbers are in their order; texts and flags have none."""
    if all(type(value) is int for value in values):
        ascending = tuple(sorted(values, key=int))
        return Ordinal(name, ascending, ascending[0])
    return Choice(name, tuple(values), values[0])


def _rules(declared: Sequence[Parameter], points: Collection[Point]) -> Iterator[Constraint]:
    """A config begins as some recorded one does, where that says anything: the space never holds much more than
    the points while it is enumerated."""
    names = tuple(parameter.name for parameter in declared)
    before = 1
    for end, parameter in enumerate(declared, start=1):
        beginnings = {point[:end] for point in points}
        if len(beginnings) < before * len(parameter.values):
            yield _rule(names[:end], beginnings)
        before = len(beginnings)


def _rule(read: tuple[str, ...], beginnings: set[Point]) -> Constraint:
    def holds(values: Mapping[str, Value]) -> bool:
        return tuple(values[name] for name in read) in beginnings

    return Constraint(f"recorded_{len(read)}", read, holds, "no such config was recorded")
