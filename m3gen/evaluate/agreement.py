"""How well predicted times agree with published ones: in order, and in size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

# A predicted sum can come out at or under zero; in a mean of ratios it counts as this.
LEAST_RATIO = 0.01


def kendall(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kendall's tau-b of two parallel sequences, -1 to 1; None where one of them does not vary."""
    concordant = discordant = tied_a = tied_b = 0
    for (a1, b1), (a2, b2) in combinations(zip(a, b, strict=True), 2):
        signs = ((a1 > a2) - (a1 < a2)) * ((b1 > b2) - (b1 < b2))
        concordant += signs > 0
        discordant += signs < 0
        tied_a += a1 == a2
        tied_b += b1 == b2
    pairs = len(a) * (len(a) - 1) // 2
    scale = math.sqrt((pairs - tied_a) * (pairs - tied_b))
    return (concordant - discordant) / scale if scale else None


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties ranked in the middle; None where one sequence does not vary."""
    x, y = _ranks(a), _ranks(b)
    mean = (len(a) - 1) / 2
    scale = math.sqrt(math.fsum((v - mean) ** 2 for v in x) * math.fsum((v - mean) ** 2 for v in y))
    both = math.fsum((v - mean) * (w - mean) for v, w in zip(x, y, strict=True))
    return both / scale if scale else None


def mean_ratio(ratios: Sequence[float]) -> float:
    """The geometric mean of predicted over published, 1 for none at all."""
    return math.exp(math.fsum(_log(ratio) for ratio in ratios) / len(ratios)) if ratios else 1.0


def mean_factor(ratios: Sequence[float]) -> float:
    """By what factor predictions are off, either way, in the geometric mean: 1 or more."""
    return math.exp(math.fsum(abs(_log(ratio)) for ratio in ratios) / len(ratios)) if ratios else 1.0


def worst_ratio(ratios: Sequence[float]) -> float:
    """The ratio furthest from 1, either way."""
    return max(ratios, key=lambda ratio: abs(_log(ratio)))


def _log(ratio: float) -> float:
    return math.log(max(ratio, LEAST_RATIO))


def _ranks(values: Sequence[float]) -> list[float]:
    """From 0; equals share the mean of their places."""
    below = [sum(other < value for other in values) for value in values]
    equal = [sum(other == value for other in values) for value in values]
    return [low + (same - 1) / 2 for low, same in zip(below, equal, strict=True)]
