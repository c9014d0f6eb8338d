"""Which point stays when two are of one problem, and which config answers where there is no point."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from m3gen.codegen.generate import legal_config
from m3gen.ops.base import Op
from m3gen.spec import DTYPES, KV_SCALES, MINIMAX_M3, Problem
from m3gen.tables.table import EXACT_FIELDS, Fallback, Point, PointStatus, Values
from m3gen.targets import DEVICES

Times = Mapping[Problem, Mapping[str, float]]
"""Per problem the microseconds of each config id that was judged on it."""

_NAMES: dict[str, tuple[str, ...]] = {
    "q_dtype": tuple(DTYPES),
    "kv_dtype": tuple(DTYPES),
    "kv_scale": KV_SCALES,
}
# Enough of each size to meet any rule that asks whether one divides, or is at most, another.
_SIZES = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256)


def displaces(new: Point, old: Point) -> bool:
    """Whether a point takes the place of one that is in the table: never a prediction that of a measurement,
    nor an older version of a judge that of a newer one."""
    if new.status is not old.status:
        return new.status is PointStatus.MEASURED
    (new_judge, new_version), (old_judge, old_version) = _judge(new), _judge(old)
    return new_judge != old_judge or new_version >= old_version


def better(new: Point, old: Point) -> bool:
    """Whether, of two findings of one export on one problem, the new one is the one to keep."""
    if new.status is not old.status or _judge(new) != _judge(old):
        return displaces(new, old)
    return (new.us, new.config) < (old.us, old.config)


def conflict(a: Point, b: Point) -> str:
    """Why no rule says which of two points of one problem to keep; "" when one does, or both say the same."""
    if a.status is not b.status or a.evidence == b.evidence:
        return ""
    if _judge(a)[0] == _judge(b)[0] or a.config == b.config:
        return ""
    return (
        f"{a.status} by {a.judge} and by {b.judge}, which do not compare, with configs {a.config} and {b.config}"
    )


def refusal(op: Op, problem: Problem, config: Values) -> str | None:
    """Why a config is not of the op's space for a problem; None when it is."""
    try:
        legal_config(op, problem, config)
    except ValueError as error:
        return str(error)
    return None


def variant_fields(op: Op, problems: Iterable[Problem]) -> tuple[str, ...]:
    """The fields on which `op.variant` depends, found by changing one at a time."""
    found: set[str] = set()
    for problem in {repr(dict(op.variant(problem))): problem for problem in problems}.values():
        here = dict(op.variant(problem))
        for name in set(EXACT_FIELDS) - found:
            if any(dict(op.variant(other)) != here for other in _changed(problem, name)):
                found.add(name)
    return _ordered(found)


def fallbacks(
    op: Op, variant: tuple[str, ...], points: Sequence[Point], configs: Mapping[str, Values], times: Times
) -> tuple[Fallback, ...]:
    """Per variant the config known to run on most of its points; of those, the one whose ratio to the
    baseline has the best geometric mean over them.

    The key also holds the fields that cannot be changed without one of the configs breaking a rule of the op.
    """
    fields = _ordered({*variant, *_bound_fields(op, variant, points, configs)})
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        groups.setdefault(tuple(getattr(point.problem, name) for name in fields), []).append(point)
    return tuple(
        Fallback(key=dict(zip(fields, values, strict=True)), config=_most_useful(groups[values], times))
        for values in sorted(groups)
    )


def _bound_fields(
    op: Op, variant: tuple[str, ...], points: Sequence[Point], configs: Mapping[str, Values]
) -> set[str]:
    bound: set[str] = set()
    loadless = {(point.problem.with_load(1, 1), point.config) for point in points}
    for problem, config in sorted(loadless):
        for name in set(EXACT_FIELDS) - {*variant, *bound}:
            if any(refusal(op, other, configs[config]) for other in _changed(problem, name)):
                bound.add(name)
    return bound


def _changed(problem: Problem, name: str) -> list[Problem]:
    """The problem with other values of one field."""
    values: Iterable[Any] = _NAMES.get(name, _SIZES)
    if name in ("group_size", "kv_heads"):  # what a rank of the model can hold; rules also bound what no rank has
        values = sorted({getattr(MINIMAX_M3.shard(ranks), name) for ranks in (1, 2, 4, 8, 16)})
    if name == "compute_units":
        values = sorted({d.compute_units for d in DEVICES.values() if d.arch == problem.arch})
    return [replace(problem, **{name: value}) for value in values]


def _ordered(names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in EXACT_FIELDS if name in names)


def _most_useful(points: Sequence[Point], times: Times) -> str:
    def rank(config: str) -> tuple[int, float, str]:
        ratios = []
        for point in points:
            us = point.us if point.config == config else times.get(point.problem, {}).get(config)
            if us is not None:
                ratios.append((point.baseline_us or point.us) / us)
        return (-len(ratios), -math.fsum(map(math.log, ratios)), config)

    return min({point.config for point in points}, key=rank)


def _judge(point: Point) -> tuple[str, int]:
    """Version 12 of "predict-amd-" for "predict-amd-12"."""
    number = re.search(r"\d+$", point.judge)
    return (point.judge[: number.start()], int(number.group())) if number else (point.judge, -1)
