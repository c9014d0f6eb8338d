"""What the evaluations of related problems and archs say about every config of a space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from m3gen.search.features import features
from m3gen.search.prior import Prior
from m3gen.space import Config, Space

if TYPE_CHECKING:
    from m3gen.search.features import Floats

LEAST = 20  # evaluations of a sibling that this space shares, below which it is passed over
MOST = 5000  # of one sibling that a forest is grown from: more cost seconds and say little new
TREES = 50


@lru_cache(maxsize=512)  # one for each problem of a session: a forest takes a second or two
def expectation(space: Space, prior: Prior, seed: int) -> Floats | None:
    """The logarithm of the time of each id, up to a constant: the mean of what a forest learnt from each sibling.
    None when no sibling has enough to tell.

    A forest without bagging gives back what it was taught, so a config that the sibling knows has its own time.
    """
    found = [learnt for sibling in prior.siblings if (learnt := _learnt(space, sibling, seed)) is not None]
    if not found:
        return None
    mean: Floats = sum(found[1:], found[0]) / len(found)
    return mean


def _learnt(space: Space, sibling: Mapping[Config, float | None], seed: int) -> Floats | None:
    import numpy as np
    from sklearn.ensemble import ExtraTreesRegressor

    shared = {space.id(config): value for config, value in sibling.items() if config in space}
    times = [value for value in shared.values() if value is not None]
    if len(times) < LEAST:
        return None
    worst = max(times)
    ids = np.array(list(shared))
    logs = np.array([math.log(worst if value is None else value) for value in shared.values()])
    if len(ids) > MOST:
        chosen = np.random.default_rng(seed).permutation(len(ids))[:MOST]
        ids, logs = ids[chosen], logs[chosen]
    rows = features(space).rows
    forest = ExtraTreesRegressor(TREES, random_state=seed % (1 << 32)).fit(rows[ids], logs - logs.mean())
    found: Floats = forest.predict(rows)
    return found
