"""A calibrated ranking: a linear score whose softmax over a pool gives the shipped winner, fitted by ridge.

Only differences inside one pool count, so whatever is equal for all its configurations drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"

_STEPS = 20
_IMPROVEMENT = 1e-4  # of the mean log-likelihood: Newton's steps end below it


@dataclass(frozen=True, slots=True)
class Contest:
    """`features` [configurations, features] of one pool; `winner` is a row."""

    features: Array
    winner: int


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
    scale = np.sqrt(np.mean([contest.features.var(0) for contest in contests], axis=0))
    differs = scale > 1e-9
    inverse = np.where(differs, 1 / np.where(differs, scale, 1), 0)
    likelihood = _Likelihood(contests, inverse, penalty)
    weights = np.zeros(len(scale))
    loss = likelihood.loss(weights)
    for _ in range(_STEPS):
        step, size = likelihood.newton(weights), 1.0
        while (new := likelihood.loss(weights - size * step)) > loss and size > 1e-3:
            size /= 2
        if new > loss:
            break
        weights, gain, loss = weights - size * step, loss - new, new
        if gain < _IMPROVEMENT * len(contests):
            break
    return Ranker(weights * inverse, scale)


class _Likelihood:
    """All contests in one array [rows, features] of differences to the winner of the row's contest."""

    def __init__(self, contests: Sequence[Contest], inverse: Array, penalty: float) -> None:
        self.rows = (
            np.vstack([contest.features - contest.features[contest.winner] for contest in contests]) * inverse
        )
        lengths = [len(contest.features) for contest in contests]
        self.starts = np.cumsum([0, *lengths[:-1]])
        self.contest = np.repeat(np.arange(len(contests)), lengths)
        self.penalty = penalty

    def loss(self, weights: Array) -> float:
        """Negative log of likelihood times prior."""
        scores = self.rows @ weights
        top = np.maximum.reduceat(scores, self.starts)
        sums = np.add.reduceat(np.exp(scores - top[self.contest]), self.starts)
        return float((top + np.log(sums)).sum() + self.penalty / 2 * weights @ weights)

    def newton(self, weights: Array) -> Array:
        """The step from `weights` to the minimum of the loss's second-order approximation."""
        scores = self.rows @ weights
        chance = np.exp(scores - np.maximum.reduceat(scores, self.starts)[self.contest])
        chance /= np.add.reduceat(chance, self.starts)[self.contest]
        weighted = self.rows * chance[:, None]
        means = np.add.reduceat(weighted, self.starts)
        curvature = weighted.T @ self.rows - means.T @ means + self.penalty * np.eye(len(weights))
        return np.linalg.solve(curvature, means.sum(0) + self.penalty * weights)
