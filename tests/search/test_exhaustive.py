"""The exhaustive sampler."""

from __future__ import annotations

from m3gen.search.exhaustive import ExhaustiveSampler
from m3gen.search.history import History
from m3gen.testing.sampler_suite import SamplerSuite, small_space


class TestExhaustive(SamplerSuite):
    def make(self, seed: int) -> ExhaustiveSampler:
        return ExhaustiveSampler(seed)


def test_goes_by_id():
    assert ExhaustiveSampler().ask(small_space(), History({1: 1.0}, {3}), 4) == [0, 2, 4, 5]
