"""A recorded space."""

from __future__ import annotations

import itertools
import random

import pytest

from m3gen.replay.recorded import Point, recorded


def test_the_ids_hold_their_own_times():
    """Values are declared out of order, points are given in any: each id must still have its config's time."""
    parameters = {"a": [3, 1, 2], "t": ["y", "x"], "f": [True, False]}
    points: dict[Point, float | str] = {
        (a, t, f): float(a) + (t == "x") / 4 + f / 8 for a, t, f in itertools.product(*parameters.values())
    }
    kept = dict(random.Random(0).sample(sorted(points.items(), key=str), 9))
    found = recorded("k", "d", parameters, kept)
    assert len(found.space) == 9
    for config, time in found.by_config().items():
        assert time == kept[config["a"], config["t"], config["f"]]


def test_a_large_product_with_few_points_is_no_large_space():
    """Of 10^9 raw points, ten: the rules cut while the space grows, or this never ends."""
    parameters = {f"p{i}": list(range(10)) for i in range(9)}
    points: dict[Point, float | str] = {tuple([i] * 9): 1.0 + i for i in range(10)}
    assert len(recorded("k", "d", parameters, points).space) == 10


@pytest.mark.parametrize("point", [(1, 2), (7,)])
def test_a_point_outside_the_parameters_is_refused(point: Point):
    with pytest.raises(ValueError, match=r"expected one of|2 values for 1 parameters"):
        recorded("k", "d", {"a": [1, 2]}, {point: 1.0})
