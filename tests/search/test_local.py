"""The local sampler."""

from __future__ import annotations

import statistics

from m3gen.search.history import History
from m3gen.search.local import STARTUP, LocalSampler
from m3gen.search.random import RandomSampler
from m3gen.testing.sampler_suite import SamplerSuite, evaluations_to_optimum, objective, small_space


class TestLocal(SamplerSuite):
    def make(self, seed: int) -> LocalSampler:
        return LocalSampler(seed)


def test_asks_for_neighbours_of_the_best_then_of_the_next():
    space = small_space()
    observed = {id: objective(space, id) for id in range(0, 10 * STARTUP, 10)}
    best, second = sorted((v, id) for id, v in observed.items() if v is not None)[:2]
    near = [id for id in space.neighbours(best[1]) if id not in observed]
    asked = LocalSampler(0).ask(space, History(observed), len(near) + 1)
    assert sorted(asked[:-1]) == near
    assert asked[-1] in space.neighbours(second[1])


def test_finds_the_optimum_in_fewer_evaluations_than_random():
    space = small_space()
    local = statistics.mean(evaluations_to_optimum(LocalSampler(seed), space) for seed in range(8))
    random = statistics.mean(evaluations_to_optimum(RandomSampler(seed), space) for seed in range(8))
    assert local < 0.7 * random
