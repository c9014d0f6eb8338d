"""Kinds of parameters: values, types, neighbours."""

from __future__ import annotations

import pickle

import pytest

from m3gen.space import Choice, Flag, Ordinal, Parameter, PowerOfTwo


def test_power_of_two_lists_both_ends():
    assert PowerOfTwo("B", 16, 128, 64).values == (16, 32, 64, 128)


@pytest.mark.parametrize(("low", "high"), [(0, 4), (3, 8), (4, 12)])
def test_power_of_two_refuses_other_ends(low: int, high: int):
    with pytest.raises(ValueError, match="no power of two"):
        PowerOfTwo("B", low, high, high)


def test_neighbours_of_ordered_kinds_are_adjacent():
    assert PowerOfTwo("B", 16, 128, 64).neighbours(32) == (16, 64)
    assert Ordinal("S", (1, 2, 5), 1).neighbours(1) == (2,)
    assert Ordinal("S", (1, 2, 5), 1).neighbours(5) == (2,)


def test_neighbours_of_unordered_kinds_are_all_others():
    assert Choice("C", ("x", "y", "z"), "x").neighbours("y") == ("x", "z")
    assert Flag("F", True).neighbours(True) == (False,)


@pytest.mark.parametrize(
    "parameter",
    [
        Choice("C", (0, 1, "0", True), 0),
        Ordinal("O", (1, 3, 9), 3),
        PowerOfTwo("P", 1, 64, 8),
        Flag("F", True),
    ],
)
def test_neighbours_are_mutual(parameter: Parameter):
    for value in parameter.values:
        for other in parameter.neighbours(value):
            back = parameter.neighbours(other)
            assert any(type(v) is type(value) and v == value for v in back)


def test_true_is_not_one():
    parameter = Choice("C", (1, True), 1)
    assert parameter.index(1) == 0
    assert parameter.index(True) == 1
    with pytest.raises(ValueError, match="expected one of False, True"):
        Flag("F", True).index(1)


@pytest.mark.parametrize(
    ("name", "values", "default", "message"),
    [
        ("C", (1, 1), 1, "repeat"),
        ("C", (), 1, "no values"),
        ("C", (1, 2), 3, "expected one of 1, 2"),
        ("a b", (1,), 1, "name"),
    ],
)
def test_bad_declarations_are_refused(name: str, values: tuple[int, ...], default: int, message: str):
    with pytest.raises(ValueError, match=message):
        Choice(name, values, default)


def test_parameters_are_values():
    assert PowerOfTwo("B", 1, 4, 2) == PowerOfTwo("B", 1, 4, 2)
    assert pickle.loads(pickle.dumps(PowerOfTwo("B", 1, 4, 2))) == PowerOfTwo("B", 1, 4, 2)
