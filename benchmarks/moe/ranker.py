"""A calibrated ranking: a linear score whose softmax over a pool gives the shipped winner, fitted by ridge.

Only differences inside one pool count, so whatever is equal for all its configurations drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"

_STEPS = 15
_IMPROVEMENT = 1e-4  # of the mean log-likelihood: Newton's steps end below it
_NEGLIGIBLE = 1e-7  # probability of a rival that adds nothing to the curvature


@dataclass(frozen=True, slots=True)
class Contest:
    """`features` [configurations, features] of one pool; `winner` is a row. A higher `weight` counts more."""

    features: Array
    winner: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Ranker:
    """`weights` [features], of features as they come; `scale` [features] is their spread inside pools."""

    weights: Array
    scale: Array

    def cost(self, features: Array) -> Array:
        """[configurations]: lower ranks better."""
        return -(features @ self.weights)

    @property
    def standardised(self) -> Array:
        """Weights per standard deviation inside a pool: what makes features comparable."""
        return self.weights * self.scale


def fit(contests: Sequence[Contest], penalty: float) -> Ranker:
    """The most likely weights under a Gaussian prior of precision `penalty` on standardised features."""
    spread = np.mean([contest.features.var(0) for contest in contests], axis=0)
    scale = np.sqrt(spread)
    usable = scale > 1e-9
    inverse = np.where(usable, 1 / np.where(usable, scale, 1), 0)
    data = [((c.features - c.features[c.winner]) * inverse, c.weight) for c in contests]
    weights = np.zeros(len(scale))
    loss = _loss(weights, data, penalty)
    for _ in range(_STEPS):
        step = _newton(weights, data, penalty)
        size = 1.0
        while (new := _loss(weights - size * step, data, penalty)) > loss and size > 1e-3:
            size /= 2
        if new > loss:
            break
        weights, gain, loss = weights - size * step, loss - new, new
        if gain < _IMPROVEMENT * len(data):
            break
    return Ranker(weights * inverse, scale)


def _loss(weights: Array, data: Sequence[tuple[Array, float]], penalty: float) -> float:
    """Negative log of likelihood times prior; every row holds differences to the winner."""
    total = penalty / 2 * float(weights @ weights)
    for differences, weight in data:
        scores = differences @ weights
        top = scores.max()
        total += weight * (top + float(np.log(np.exp(scores - top).sum())))
    return total


def _newton(weights: Array, data: Sequence[tuple[Array, float]], penalty: float) -> Array:
    gradient, curvature = penalty * weights, penalty * np.eye(len(weights))
    for differences, weight in data:
        scores = differences @ weights
        chance = np.exp(scores - scores.max())
        chance /= chance.sum()
        mean = chance @ differences
        near = chance > _NEGLIGIBLE
        rows = differences[near]
        gradient += weight * mean
        curvature += weight * ((rows * chance[near, None]).T @ rows - np.outer(mean, mean))
    return np.linalg.solve(curvature, gradient)
