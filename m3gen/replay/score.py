"""The methodology score of a search: how much of the way from random search to the optimum it goes.

Willemsen et al., "A Methodology for Comparing Auto-Tuning Optimization Algorithms",
https://doi.org/10.1016/j.future.2024.05.021. Here the budget is a number of evaluations, the same for every
space, and the score is taken after each of them from the tenth on: 0 is random search, 1 is the optimum at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FIRST = 10  # evaluations before the first at which the score is taken: until then every sampler is in the dark
NEAR = 1.05  # of the optimum: a run that ends within counts as a hit


@dataclass(frozen=True, slots=True)
class Scored:
    """One run: its score, and whether it ended within 5 % of the optimum."""

    score: float
    hit: bool


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What the runs on one space are held against, in milliseconds.

    `baseline[k]`: the best after k + 1 evaluations that random search without replacement expects. `worst` stands
    in for the time of what failed. A failed config is charged like any other.
    """

    baseline: tuple[float, ...]
    optimum: float
    worst: float

    def scored(self, trace: Sequence[float | None]) -> Scored:
        """A run by the times of what it evaluated, in order, None where it failed. One that ended before the
        budget keeps its best: it knew that there was no more to find."""
        budget = len(self.baseline)
        best, curve = self.worst, []
        for value in trace[:budget]:
            best = best if value is None else min(best, value)
            curve.append(best)
        curve += [best] * (budget - len(curve))
        gains = [
            (self.baseline[k] - curve[k]) / (self.baseline[k] - self.optimum)
            for k in range(min(FIRST, budget) - 1, budget)
            if self.baseline[k] > self.optimum
        ]
        return Scored(math.fsum(gains) / len(gains) if gains else 0.0, best <= NEAR * self.optimum)


def yardstick(milliseconds: Sequence[float | None], budget: int) -> Yardstick:
    """Of a recorded space, for runs of `budget` evaluations; one that sees the whole space ends at its size."""
    known = sorted(value for value in milliseconds if value is not None)
    values = known + [known[-1]] * (len(milliseconds) - len(known))
    budget = min(budget, len(values))
    return Yardstick(tuple(expected_best(values, k) for k in range(1, budget + 1)), known[0], known[-1])


def expected_best(ascending: Sequence[float], draws: int) -> float:
    """The expected least of `draws` of these values, drawn without replacement.

    The least is the i-th value with probability C(n - i - 1, draws - 1) / C(n, draws); the ratio of one to the
    next is (n - i - draws) / (n - i - 1), so no binomial is ever computed.
    """
    n = len(ascending)
    if not 1 <= draws <= n:
        raise ValueError(f"{draws} draws from {n} values")
    chance = draws / n
    terms = []
    for i, value in enumerate(ascending[: n - draws + 1]):
        terms.append(chance * value)
        if i < n - draws:
            chance *= (n - i - draws) / (n - i - 1)
    return math.fsum(terms)


def evaluations_to(milliseconds: Sequence[float | None], share: float, most: int) -> int | None:
    """After how many evaluations random search expects to have gone `share` of the way from the median to the
    optimum: the budget that the methodology suggests. None when more than `most`."""
    known = sorted(value for value in milliseconds if value is not None)
    values = known + [known[-1]] * (len(milliseconds) - len(known))
    median = known[len(known) // 2]
    goal = median - share * (median - known[0])
    low, high = 1, min(most, len(values))
    if expected_best(values, high) > goal:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if expected_best(values, middle) <= goal else (middle + 1, high)
    return low
