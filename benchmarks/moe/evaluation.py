"""Rankings of cases by fits that have seen nothing of what is tested: its experts, or its tile, are left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .case import Case, Mask
from .features import features
from .kernels import Column
from .ranker import Array, Contest, Ranker, fit
from .terms import layer_terms

PENALTY = 30.0  # set before any fp8 case was ranked; the page says what other values give
Held: TypeAlias = Literal["experts", "tile"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of percentiles, in percent: 0 is best. `first` is the share of cases whose winner nothing is ranked before."""

    count: int
    mean: float
    median: float
    top5: float
    top10: float
    first: float

    @classmethod
    def of(cls, percentiles: Sequence[float]) -> Figures:
        p = np.array(percentiles)
        shares = (float(100 * (p <= limit).mean()) for limit in (5, 10, 0))
        return cls(len(p), float(p.mean()), float(np.median(p)), *shares)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with its `features` [configurations, features], the same for all that are ranked together."""

    case: Case
    features: Array


def unfitted(case: Case, off: Collection[str] = ()) -> Column:
    """Microseconds by the analytic terms alone."""
    return layer_terms(case.entry, case.kernels, off)["total"]


def prepare(cases: Sequence[Case], names: Sequence[str], off: Collection[str] = ()) -> list[Prepared]:
    """Each feature, and again as a correction that is 0 for two-byte elements.

    Under one penalty a correction is only as large as fp8 tables ask for: the dtypes share what they have in common.
    """
    return [Prepared(case, _with_corrections(case, features(case, names, off))) for case in cases]


def held_out(
    tested: Sequence[Prepared], training: Sequence[Prepared], held: Held, penalty: float = PENALTY
) -> list[Column]:
    """Costs of each tested case's configurations, lower is better, by a fit to `training` without what is held out.

    "experts": all cases of as many experts, of every dtype and architecture. "tile": all cases whose winner has
    the tile, and all configurations of that tile in the others.
    """
    costs: dict[int, Column] = {}
    for value in sorted({_value(one.case, held) for one in tested}, key=repr):
        ranker = fit_without(training, held, value, penalty)
        for one in tested:
            if _value(one.case, held) == value:
                costs[id(one)] = ranker.cost(one.features)
    return [costs[id(one)] for one in tested]


def fit_without(training: Sequence[Prepared], held: Held, value: object, penalty: float = PENALTY) -> Ranker:
    contests = []
    for one in training:
        if _value(one.case, held) == value:
            continue
        rivals = one.case.rivals | one.case.siblings
        if held == "tile":
            rivals = rivals & ~_of_tile(one.case, value)
        contests.append(Contest(one.features[np.append(one.case.winner, np.flatnonzero(rivals))], winner=0))
    return fit(contests, penalty)


def _value(case: Case, held: Held) -> object:
    return case.entry.experts if held == "experts" else case.entry.winner.tile


def _of_tile(case: Case, tile: object) -> Mask:
    return np.array([config.tile == tile for config in case.kernels.configs])


def _with_corrections(case: Case, plain: Array) -> Array:
    return np.hstack([plain, plain * (case.entry.campaign.element_bytes == 1)])
