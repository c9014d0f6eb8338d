"""What siblings' evaluations say of a space."""

from __future__ import annotations

import math

import numpy as np

from m3gen.search.prior import Prior
from m3gen.search.siblings import LEAST, expectation
from m3gen.space import Config
from m3gen.testing.sampler_suite import objective, small_space


def test_a_config_that_the_sibling_knows_has_its_own_time():
    space = small_space()
    known = {config: objective(space, id) for id, config in enumerate(space) if id % 3}
    found = expectation(space, Prior(siblings=(known,)), 0)
    assert found is not None
    logs = {
        id: math.log(value) for id in range(len(space)) if id % 3 and (value := objective(space, id)) is not None
    }
    off = np.array([found[id] - log for id, log in logs.items()])
    assert np.ptp(off) < 1e-9


def test_what_it_does_not_know_is_learnt_from_what_it_does():
    space = small_space()
    known = {config: objective(space, id) for id, config in enumerate(space) if id % 3}
    found = expectation(space, Prior(siblings=(known,)), 0)
    assert found is not None
    unknown = [id for id in range(0, len(space), 3) if objective(space, id) is not None]
    times = [math.log(objective(space, id) or 1.0) for id in unknown]
    assert np.corrcoef(found[unknown], times)[0, 1] > 0.8


def test_too_few_or_strange_configs_say_nothing():
    space = small_space()
    few = {space.config(id): 1.0 for id in range(LEAST - 1)}
    strange: dict[Config, float | None] = {Config({"OTHER": i}): 1.0 for i in range(100)}
    assert expectation(space, Prior(siblings=(few, strange)), 0) is None


def test_failures_are_the_worst():
    space = small_space()
    known = {config: (None if config["MASK"] else 1.0 + id % 7) for id, config in enumerate(space)}
    found = expectation(space, Prior(siblings=(known,)), 0)
    assert found is not None
    failed = [bool(config["MASK"]) for config in space]
    assert found[failed].min() >= found.max() - 1e-9
