"""The features of a space, and the process that learns from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from m3gen.search.features import features
from m3gen.space import Choice, Flag, Ordinal, Space


def space() -> Space:
    return Space(
        [
            Flag("SPLIT", False),
            Ordinal("PARTS", (2, 4, 8), 4, active=lambda v: bool(v["SPLIT"])),
            Choice("LOAD", ("a", "b", "c"), "a"),
            Choice("ONE", (1,), 1),
        ]
    )


def test_places_and_values_by_hand():
    found = features(space())
    assert found.groups == (1, 1, 4, 3)  # SPLIT's place, PARTS' place and values with inactive, LOAD's values
    root = 1 / math.sqrt(2)
    rows = [row.round(6).tolist() for row in found.rows]
    by = {tuple(sorted(config.to_dict().items())): row for config, row in zip(space(), rows, strict=True)}
    off = by[(("LOAD", "b"), ("ONE", 1), ("SPLIT", False))]
    assert off == pytest.approx([0, 0.5, 0, 0, 0, root, 0, root, 0], abs=1e-6)
    on = by[(("LOAD", "a"), ("ONE", 1), ("PARTS", 8), ("SPLIT", True))]
    assert on == pytest.approx([1, 1, 0, 0, root, 0, root, 0, 0], abs=1e-6)


def test_how_often_two_divides_a_value_is_a_feature_where_it_is_not_the_place():
    blocks = Ordinal("BLOCK", (16, 32, 48, 64), 16)
    found = features(Space([blocks, Ordinal("TILE", (1, 2, 4), 1), Ordinal("ODD", (3, 5, 7), 3)]))
    assert found.groups == (1, 1, 4, 1, 3, 1, 3)  # BLOCK's place, halvings and values; the others have no halvings
    alone = Space([blocks])
    halvings = {config["BLOCK"]: features(alone).rows[id, 1] for id, config in enumerate(alone)}
    assert halvings == {16: 0.0, 32: 0.5, 48: 0.0, 64: 1.0}


def test_different_configs_have_different_rows():
    rows = features(space()).rows
    assert len(np.unique(rows, axis=0)) == len(space())


def test_a_space_of_one_config_has_a_row():
    assert features(Space([Choice("A", ("only",), "only")])).rows.shape == (1, 1)


def test_the_process_finds_out_which_column_matters():
    from m3gen.search.gaussian_process import fitted_kernel, posterior

    rows = np.random.default_rng(0).random((40, 3))
    values = np.sin(6 * rows[:, 1])
    values = (values - values.mean()) / values.std()
    kernel = fitted_kernel(rows, (1, 1, 1), values)
    scales = kernel.k1.k2.length_scale
    assert scales[1] < 0.5 * min(scales[0], scales[2])
    mean, deviation = posterior(kernel, rows, values, rows[:5])
    assert mean == pytest.approx(values[:5], abs=0.1)
    _, afar = posterior(kernel, rows, values, np.full((1, 3), 9.0))
    assert deviation.max() < 0.2 * afar[0]


def test_shared_scales_have_the_gradient_of_the_density():
    from m3gen.search.gaussian_process import _climb, _Process, fitted_kernel

    generator = np.random.default_rng(1)
    rows, values = generator.random((12, 5)), generator.standard_normal(12)
    process = _Process(fitted_kernel(rows, (1, 3, 1), values), optimizer=_climb).fit(rows, values)
    theta = process.kernel_.theta + 0.3
    _, gradient = process.log_marginal_likelihood(theta, eval_gradient=True)
    for axis in range(len(theta)):
        step = np.zeros(len(theta))
        step[axis] = 1e-5
        up, down = (process.log_marginal_likelihood(theta + sign * step) for sign in (1, -1))
        assert gradient[axis] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-4)


def test_the_posterior_is_scikit_learns():
    from m3gen.search.gaussian_process import _Process, fitted_kernel, posterior

    generator = np.random.default_rng(2)
    rows, values, asked = generator.random((30, 5)), generator.standard_normal(30), generator.random((40, 5))
    kernel = fitted_kernel(rows, (1, 3, 1), values)
    theirs = _Process(kernel).fit(rows, values).predict(asked, return_std=True)
    for mine, other in zip(posterior(kernel, rows, values, asked), theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-6)
