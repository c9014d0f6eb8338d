from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.evaluate.agreement import kendall, mean_factor, mean_ratio, spearman, worst_ratio

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12, unique=True)


@given(VALUES)
def test_any_order_agrees_with_itself_and_opposes_its_reverse(values: list[float]) -> None:
    backwards = [-value for value in values]
    for measure in (kendall, spearman):
        assert measure(values, values) == pytest.approx(1)
        assert measure(values, backwards) == pytest.approx(-1)


def test_known_values() -> None:
    a, b = [1, 2, 3, 4, 5], [3, 1, 2, 5, 4]
    assert kendall(a, b) == pytest.approx(0.4)  # 7 of 10 pairs agree
    assert spearman(a, b) == pytest.approx(0.6)  # 1 - 6 * 8 / (5 * 24)


def test_ties_count_for_neither_side() -> None:
    assert kendall([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / (2 * 3) ** 0.5)
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(3 / (1.5 * 2) ** 0.5 / 2)


def test_nothing_agrees_with_what_does_not_vary() -> None:
    for measure in (kendall, spearman):
        assert measure([1, 1], [1, 2]) is None
        assert measure([1], [1]) is None


def test_ratios_either_side_of_one_cancel_in_the_mean_and_not_in_the_factor() -> None:
    assert mean_ratio([2, 0.5]) == pytest.approx(1)
    assert mean_factor([2, 0.5]) == pytest.approx(2)
    assert worst_ratio([1.5, 0.5]) == 0.5


def test_a_sum_predicted_under_zero_is_the_worst_of_all() -> None:
    assert worst_ratio([0.02, -3.0, 5.0]) == -3.0
    assert mean_factor([-3.0]) == pytest.approx(100)
