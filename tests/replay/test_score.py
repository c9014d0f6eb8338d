"""The methodology score."""

from __future__ import annotations

import itertools
import statistics

import pytest

from m3gen.replay.score import evaluations_to, expected_best, yardstick

VALUES = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]


@pytest.mark.parametrize("draws", range(1, 7))
def test_the_expected_best_is_the_mean_over_all_draws(draws: int):
    every = statistics.fmean(min(drawn) for drawn in itertools.combinations(VALUES, draws))
    assert expected_best(sorted(VALUES), draws) == pytest.approx(every, rel=1e-12)


def test_no_draw_and_too_many_are_refused():
    for draws in (0, 7):
        with pytest.raises(ValueError, match=f"{draws} draws from 6 values"):
            expected_best(sorted(VALUES), draws)


def test_a_large_space_keeps_its_digits():
    values = [1.0 + i for i in range(100_000)]
    assert expected_best(values, 100) == pytest.approx(100_001 / 101, rel=1e-9)  # the first order statistic


def test_the_optimum_at_once_scores_one_and_the_expectation_zero():
    times: list[float | None] = [float(i) for i in range(1, 501)]
    measure = yardstick(times, 50)
    assert measure.scored([1.0] * 50).score == 1.0
    assert measure.scored(list(measure.baseline)).score == pytest.approx(0.0, abs=1e-12)
    assert measure.scored([500.0] * 50).score < 0


def test_the_first_nine_evaluations_do_not_count():
    measure = yardstick([float(i) for i in range(1, 501)], 20)
    late = measure.scored([500.0] * 9 + [1.0] * 11)
    assert late.score == 1.0
    assert measure.scored([500.0] * 10 + [1.0] * 10).score < 1.0


def test_failures_are_charged_and_count_as_the_worst():
    times: list[float | None] = [None] * 300 + [float(i) for i in range(1, 201)]
    measure = yardstick(times, 30)
    assert measure.worst == 200.0
    assert measure.baseline[0] == pytest.approx((300 * 200.0 + sum(range(1, 201))) / 500)
    assert measure.scored([None] * 9 + [1.0]).score == 1.0
    assert measure.scored([None] * 10 + [1.0]).score < 1.0


def test_a_run_that_ended_early_keeps_its_best():
    measure = yardstick([float(i) for i in range(1, 501)], 40)
    assert measure.scored([2.0]) == measure.scored([2.0] * 40)


def test_a_hit_is_within_five_percent_at_the_end():
    measure = yardstick([100.0, 105.0, 106.0, *range(200, 300)], 20)
    assert measure.scored([200.0] * 19 + [105.0]).hit
    assert not measure.scored([200.0] * 19 + [106.0]).hit
    assert not measure.scored([200.0] * 20 + [100.0]).hit  # past the budget


def test_a_space_smaller_than_the_budget_ends_at_its_size():
    assert len(yardstick([1.0, 2.0, 3.0], 100).baseline) == 3


def test_the_methodologys_own_budget():
    """Of 1000 equidistant times the least of k is expected at 1001 / (k + 1)."""
    times: list[float | None] = [float(i) for i in range(1, 1001)]
    assert evaluations_to(times, 0.95, 1000) == 38
    assert evaluations_to(times, 0.95, 37) is None
