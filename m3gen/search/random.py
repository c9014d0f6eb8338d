"""Configs in random order: the baseline that any other sampler must beat."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from m3gen.search.history import History
from m3gen.space import Space


class RandomSampler:
    """Walks one shuffle of the space, fixed by the seed: what was tried is skipped, whatever its outcome."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def ask(self, space: Space, history: History, count: int) -> list[int]:
        taken = history.taken
        return list(islice((id for id in shuffled(len(space), self._seed) if id not in taken), count))


@lru_cache(maxsize=8)
def shuffled(size: int, seed: int) -> Sequence[int]:
    """The numbers under `size` in an order that the seed fixes."""
    import numpy as np

    order: Sequence[int] = np.random.default_rng(seed).permutation(size).tolist()
    return order
