"""The TPE sampler."""

from __future__ import annotations

import logging
import statistics
import subprocess
import sys

import pytest

from m3gen.search.history import History
from m3gen.search.random import RandomSampler
from m3gen.search.tpe import TPESampler
from m3gen.testing.sampler_suite import SamplerSuite, evaluations_to_optimum, objective, small_space


class TestTPE(SamplerSuite):
    def make(self, seed: int) -> TPESampler:
        return TPESampler(seed)


def test_finds_the_optimum_in_fewer_evaluations_than_random():
    space = small_space()
    tpe = statistics.mean(evaluations_to_optimum(TPESampler(seed), space) for seed in range(8))
    random = statistics.mean(evaluations_to_optimum(RandomSampler(seed), space) for seed in range(8))
    assert tpe < 0.7 * random


def test_failures_teach():
    """Where half of the space fails, proposals come from the other half."""
    space = small_space()
    failing = [id for id in range(len(space)) if space.config(id)["MASK"]]
    working = [id for id in range(len(space)) if not space.config(id)["MASK"]]
    observed: dict[int, float | None] = dict.fromkeys(failing[:15]) | dict.fromkeys(working[:15], 5.0)
    asked = [id for seed in range(5) for id in TPESampler(seed).ask(space, History(observed), 6)]
    assert sum(id in working for id in asked) >= 22


def test_a_longer_history_and_a_fresh_one_agree():
    """The study at hand is extended, not rebuilt: the proposals must not tell."""
    space = small_space()
    sampler = TPESampler(0)
    observed = {id: objective(space, id) for id in range(12)}
    for id in range(12, 20):
        sampler.ask(space, History(observed), 1)
        observed = {**observed, id: objective(space, id)}
    assert sampler.ask(space, History(observed), 5) == TPESampler(0).ask(space, History(observed), 5)


def test_optuna_is_silent(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture):
    space = small_space()
    with caplog.at_level(logging.INFO):
        TPESampler(0).ask(space, History({id: objective(space, id) for id in range(20)}), 3)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_importing_the_sampler_does_not_import_optuna():
    program = "import sys, m3gen.search.tpe; sys.exit('optuna' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
