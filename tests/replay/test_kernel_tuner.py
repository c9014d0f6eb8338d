"""Kernel Tuner's strategies on recorded spaces, where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.replay import kernel_tuner
from m3gen.replay.files import read
from tests.replay import spaces

pytestmark = pytest.mark.skipif(not kernel_tuner.available(), reason=kernel_tuner.HOW_TO_GET_IT)


@pytest.mark.parametrize("strategy", kernel_tuner.STRATEGIES)
def test_a_strategy_is_charged_for_each_config_once(tmp_path: Path, strategy: str):
    space = read(spaces.write(tmp_path, "one"))
    trace = kernel_tuner.simulate(space, strategy, 40, seed=1)
    assert len(trace) == 40
    assert {value for value in trace if value is not None} <= set(space.milliseconds)


def test_failures_are_part_of_its_space(tmp_path: Path):
    space = read(spaces.write(tmp_path, "one"))
    assert None in kernel_tuner.simulate(space, "random_sample", 400, seed=0)


def test_an_unknown_strategy_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="has no strategy 'hybird'"):
        kernel_tuner.simulate(read(spaces.write(tmp_path, "one")), "hybird", 20, seed=0)
