"""The hybrid sampler."""

from __future__ import annotations

import statistics
import subprocess
import sys
import warnings

from m3gen.search.history import History
from m3gen.search.hybrid import EXPLORE, SEEDS, STARTUP, HybridSampler
from m3gen.search.prior import Prior
from m3gen.search.random import RandomSampler, shuffled
from m3gen.space import Config, Flag, PowerOfTwo, Space
from m3gen.testing.sampler_suite import SamplerSuite, evaluations_to_optimum, objective, small_space


class TestHybrid(SamplerSuite):
    def make(self, seed: int) -> HybridSampler:
        return HybridSampler(seed)


def sibling(scale: float = 3.0) -> dict[Config, float | None]:
    """The small space as another device has it: the same order, other times."""
    space = small_space()
    found = ((config, objective(space, id)) for id, config in enumerate(space))
    return {config: None if value is None else scale * value**1.3 for config, value in found}


def started(space: Space, count: int = STARTUP) -> dict[int, float | None]:
    return {id: objective(space, id) for id in shuffled(len(space), 7)[:count]}


def test_finds_the_optimum_in_fewer_evaluations_than_random():
    space = small_space()
    hybrid = statistics.mean(evaluations_to_optimum(HybridSampler(seed), space) for seed in range(4))
    random = statistics.mean(evaluations_to_optimum(RandomSampler(seed), space) for seed in range(4))
    assert hybrid < 0.4 * random


def test_seeds_come_first_those_outside_the_space_left_out():
    space = small_space()
    inside = [space.config(id) for id in (40, 41, 17, 99, 98, 97, 96)]
    prior = Prior((Config({"BLOCK": 7}), *inside, inside[0]))
    asked = HybridSampler(0).ask(space, History(prior=prior), SEEDS)
    assert asked == [40, 41, 17, 99, 98]
    known = History({40: 1.0, 41: None}, pending={17}, prior=prior)
    assert HybridSampler(0).ask(space, known, 2) == [99, 98]


def test_a_sibling_that_agrees_leads_to_its_best_at_once():
    space = small_space()
    history = History(started(space), prior=Prior(siblings=(sibling(),)))
    optimum = min(range(len(space)), key=lambda id: objective(space, id) or 99.0)
    assert HybridSampler(0).ask(space, history, 1) == [optimum]


def test_a_sibling_that_is_wrong_is_found_out():
    space = small_space()
    opposite = {config: None if value is None else 1 / value for config, value in sibling().items()}
    prior = Prior(siblings=(opposite,))
    misled = statistics.mean(evaluations_to_optimum(HybridSampler(seed), space, prior) for seed in range(4))
    random = statistics.mean(evaluations_to_optimum(RandomSampler(seed), space) for seed in range(4))
    assert misled < 0.7 * random


def test_some_candidates_are_not_the_surrogates():
    """Whatever the evaluations say, every so many-th config is the next of a fixed shuffle."""
    space = small_space()
    ids = shuffled(len(space), 7)[:EXPLORE]
    for best in ids[:4]:
        observed = {id: 1.0 if id == best else 5.0 for id in ids}
        expected = next(id for id in shuffled(len(space), 3) if id not in observed)
        assert HybridSampler(3).ask(space, History(observed), 1) == [expected]


def test_what_is_pending_makes_the_next_another():
    space = small_space()
    observed = started(space, 20)
    (first,) = HybridSampler(0).ask(space, History(observed), 1)
    both = HybridSampler(0).ask(space, History(observed), 2)
    assert both[0] == first
    assert HybridSampler(0).ask(space, History(observed, {first}), 1) == [both[1]]


def test_failures_teach():
    """Where half of the space fails, the surrogate's proposals come from the other half."""
    space = small_space()
    failing = [id for id in range(len(space)) if space.config(id)["MASK"]]
    working = [id for id in range(len(space)) if not space.config(id)["MASK"]]
    observed: dict[int, float | None] = dict.fromkeys(failing[:15]) | dict.fromkeys(working[:14], 5.0)
    asked = [id for seed in range(3) for id in HybridSampler(seed).ask(space, History(observed), 2)]
    assert set(asked) <= set(working)


def test_equal_times_are_no_fault_and_no_warning():
    space = Space([PowerOfTwo("A", 1, 64, 8), Flag("B", True)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = HybridSampler(0).ask(space, History(dict.fromkeys(range(9), 2.0)), 2)
    assert len(set(asked)) == 2


def test_a_long_history_is_cut_to_the_best_and_the_latest():
    space = Space([PowerOfTwo("A", 1, 1 << 20, 8), PowerOfTwo("B", 1, 1 << 20, 8)])
    observed = {id: 1.0 + id for id in range(300)}
    (asked,) = HybridSampler(0).ask(space, History(observed), 1)
    assert 300 <= asked < len(space)


def test_importing_the_sampler_imports_neither_scikit_learn_nor_numpy():
    program = "import sys, m3gen.search.hybrid; sys.exit('sklearn' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
