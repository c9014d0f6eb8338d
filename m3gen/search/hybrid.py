"""The default sampler: seeds, a few random configs, then what a surrogate expects most of, near the best and afar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from m3gen.search.features import features
from m3gen.search.history import History
from m3gen.search.local import best_first, neighbours
from m3gen.search.prior import Prior
from m3gen.search.random import shuffled
from m3gen.search.siblings import expectation
from m3gen.space import Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from m3gen.search.features import Floats

    Ids = NDArray[np.int64]

SEEDS = 5  # configs of the prior that are tried before anything else
STARTUP = 5  # evaluations before the surrogate is asked: more of them cost more than they taught (docs/search.md)
EXPLORE = 20  # every so many-th config is a random one, whatever the surrogate expects
POOL = 1000  # random configs that the surrogate looks at, beside the neighbours of
CENTRES = 5  # the best so many
PROMISING = 500  # and what the siblings expect most of
MOST = 150  # evaluations that the surrogate learns from: its cost grows with their cube
REFIT = 1.4  # the scales are fitted anew when evaluations have grown by this factor
FAILED = 2.0  # times the worst is what a failed config counts as beside siblings; its speed is nothing anyway
LOYALTY = 1.0  # weight of the belief that times go with the siblings', in squares of a logarithm


class HybridSampler:
    """Seeds of the prior first. Then the config of the greatest expected improvement, by a Gaussian process over
    the speeds, among the neighbours of the best configs and a random sample of the space.

    With evaluations of siblings the process models what is left of the logarithms of the times after a trend: the
    times of the siblings to some power, one a priori, less the less the two go together.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._fitted: tuple[object, Any] = (None, None)

    def ask(self, space: Space, history: History, count: int) -> list[int]:
        taken = history.taken
        found = [id for id in seeds(space, history.prior) if id not in taken][:count]
        taken.update(found)
        while len(found) < count and len(taken) < len(space):
            found.append(self._next(space, history, [*history.pending, *found], taken))
            taken.add(found[-1])
        return found

    def _next(self, space: Space, history: History, pending: Sequence[int], taken: set[int]) -> int:
        ranked = best_first(history)
        if len(history.observed) < STARTUP or not ranked or len(taken) % EXPLORE == 0:
            return next(id for id in shuffled(len(space), self._seed) if id not in taken)
        from m3gen.search.gaussian_process import posterior

        known = features(space).rows
        siblings = expectation(space, history.prior, self._seed)
        lesson = _lesson(space, history, siblings)
        kernel = self._kernel(space, history, siblings)
        if pending:  # they are believed to come out as expected, so that the next one is another
            rows = known[list(pending)]
            lesson = lesson.with_more(rows, posterior(kernel, lesson.rows, lesson.values, rows)[0])
        candidates = self._candidates(space, ranked, siblings, taken)
        rest, deviation = posterior(kernel, lesson.rows, lesson.values, known[candidates])
        gain = _expected_improvement(lesson.best, rest + lesson.trend[candidates], deviation)
        return int(candidates[int(gain.argmax())])

    def _candidates(self, space: Space, ranked: Sequence[int], siblings: Floats | None, taken: set[int]) -> Ids:
        """Unseen ids for the surrogate to choose from."""
        import numpy as np

        free = np.ones(len(space), dtype=bool)
        free[list(taken)] = False
        generator = np.random.default_rng((self._seed, len(taken)))
        parts = [np.array(neighbours(space, centre), dtype=np.int64) for centre in ranked[:CENTRES]]
        parts.append(generator.integers(len(space), size=POOL))
        if siblings is not None:
            order = np.argsort(siblings, kind="stable")
            parts.append(order[free[order]][:PROMISING])
        found = np.unique(np.concatenate(parts))
        found = found[free[found]]
        return found if len(found) else np.flatnonzero(free)

    def _kernel(self, space: Space, history: History, siblings: Floats | None) -> Any:
        """The kernel fitted to a beginning of the history: the same one until the beginning is another."""
        steps = math.floor(math.log(len(history.observed) / STARTUP, REFIT))
        count = math.floor(STARTUP * REFIT**steps)
        beginning = tuple(islice(history.observed.items(), count))
        key = (space, history.prior, beginning)
        if self._fitted[0] != key:
            from m3gen.search.gaussian_process import fitted_kernel

            lesson = _lesson(space, History(dict(beginning)), siblings)
            self._fitted = (key, fitted_kernel(lesson.rows, features(space).groups, lesson.values))
        return self._fitted[1]


def seeds(space: Space, prior: Prior) -> list[int]:
    """The ids of the prior's first seeds that are in the space."""
    return list(islice(dict.fromkeys(space.id(config) for config in prior.seeds if config in space), SEEDS))


@dataclass(frozen=True, slots=True)
class _Lesson:
    """`values` at the feature `rows`, less the `trend` (by id), mean 0 and deviation 1; less is better. `best` is
    the least value, trend included, in the same units."""

    rows: Floats
    values: Floats
    trend: Floats
    best: float

    def with_more(self, rows: Floats, values: Floats) -> _Lesson:
        import numpy as np

        return _Lesson(
            np.concatenate([self.rows, rows]), np.concatenate([self.values, values]), self.trend, self.best
        )


def _lesson(space: Space, history: History, siblings: Floats | None) -> _Lesson:
    import numpy as np

    ids = _taught(history)
    if siblings is None:
        values, trend = -_speeds(history.observed, ids), np.zeros(len(space))
    else:
        values = _logarithms(history.observed, ids)
        trend = _slope(siblings[ids], values) * siblings
    rest = values - trend[ids]
    middle, spread = rest.mean(), rest.std() or 1.0
    return _Lesson(
        features(space).rows[ids], (rest - middle) / spread, trend / spread, (values.min() - middle) / spread
    )


def _taught(history: History) -> list[int]:
    """All that was observed, or where that is too much, the best half and the latest half of what is not."""
    ids = list(history.observed)
    if len(ids) <= MOST:
        return ids
    best = set(best_first(history)[: MOST // 2])
    latest = [id for id in ids if id not in best][-MOST // 2 :]
    return [*best_first(history)[: MOST // 2], *latest]


def _speeds(observed: Mapping[int, float | None], ids: Sequence[int]) -> Floats:
    """By the best's, 0 for a failed config: logarithms spend the surrogate on how bad the bad ones are. Score 0.55 for
    0.49, 62 % for 55 % within 5 % of the optimum, 16 repeats of four spaces (docs/search.md)."""
    import numpy as np

    best = min((value for value in observed.values() if value is not None), default=1.0)
    return np.array([0.0 if (value := observed[id]) is None else best / value for id in ids])


def _logarithms(observed: Mapping[int, float | None], ids: Sequence[int]) -> Floats:
    import numpy as np

    worst = max((value for value in observed.values() if value is not None), default=1.0)
    return np.log([FAILED * worst if (value := observed[id]) is None else value for id in ids])


def _slope(siblings: Floats, logs: Floats) -> float:
    """Ridge regression on the siblings' logarithms, towards a slope of one, kept from opposing them."""
    x, y = siblings - siblings.mean(), logs - logs.mean()
    return max(0.0, float((x @ y + LOYALTY) / (x @ x + LOYALTY)))


def _expected_improvement(best: float, mean: Floats, deviation: Floats) -> Floats:
    import numpy as np
    from scipy.special import ndtr

    off = (best - mean) / np.maximum(deviation, 1e-9)
    gain: Floats = deviation * (off * ndtr(off) + np.exp(-0.5 * off * off) / math.sqrt(2 * math.pi))
    return gain
