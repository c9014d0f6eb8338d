"""The random sampler."""

from __future__ import annotations

from m3gen.search.history import History
from m3gen.search.random import RandomSampler
from m3gen.testing.sampler_suite import SamplerSuite, small_space


class TestRandom(SamplerSuite):
    def make(self, seed: int) -> RandomSampler:
        return RandomSampler(seed)


def test_another_seed_is_another_order():
    space = small_space()
    assert RandomSampler(0).ask(space, History(), 20) != RandomSampler(1).ask(space, History(), 20)


def test_outcomes_do_not_matter():
    space = small_space()
    ids = range(30)
    good, bad = History(dict.fromkeys(ids, 1.0)), History(dict.fromkeys(ids))
    assert RandomSampler(0).ask(space, good, 20) == RandomSampler(0).ask(space, bad, 20)
