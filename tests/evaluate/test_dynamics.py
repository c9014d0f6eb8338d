from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.evaluate.dynamics import DYNAMICS, UNITS, Dynamics, Sample, dynamics_of
from m3gen.store import Store
from tests.store.samples import facts

# 300 clocks whatever the iterations, 100 an iteration; two workgroups take half as long again, four twice as long.
SHORT = Sample(2, {1: 500.0, 2: 750.0, 4: 1000.0}, {"valu": 120.0, "lds": 60.0})
LONG = Sample(8, {1: 1100.0, 2: 1650.0, 4: 2200.0}, {"valu": 300.0, "lds": 240.0})
BOTH = Dynamics((SHORT, LONG), 0.5)


def only(trips: float, clocks: float) -> Dynamics:
    return Dynamics((Sample(trips, {1: clocks}, {"valu": clocks}),), 0.5)


@pytest.mark.parametrize("trips", [0, 2, 5, 8, 1000])
def test_iterations_lie_on_the_line_through_both_samples(trips: float) -> None:
    assert BOTH.clocks(1, trips) == (300, 100 * trips)
    assert BOTH.clocks(4, trips) == (600, 200 * trips)


def test_a_unit_is_busy_on_the_same_line() -> None:
    assert BOTH.busy("issue", 20) == 60 + 30 * 20
    assert BOTH.busy("shared", 20) == 30 * 20
    assert BOTH.busy("matrix", 20) == 0


def test_three_samples_are_the_line_through_the_first_and_the_last() -> None:
    bent = replace(SHORT, trips=4, clocks={1: 5000.0})
    assert Dynamics((SHORT, bent, LONG), 0).clocks(1, 3) == (300, 300)


def test_longer_runs_that_take_less_time_do_not_make_more_iterations_faster() -> None:
    falling = Dynamics((replace(SHORT, clocks={1: 900.0}), replace(LONG, clocks={1: 800.0})), 0)
    assert falling.clocks(1, 100) == (900, 0)


def test_what_stands_outside_is_never_negative() -> None:
    steep = Dynamics((replace(SHORT, clocks={1: 100.0}), LONG), 0)
    fixed, varying = steep.clocks(1, 8)
    assert (fixed, varying) == (0, pytest.approx(8 * 1000 / 6))


def test_one_sample_of_many_iterations_is_a_third_outside_of_the_loop() -> None:
    assert only(8, 1200).clocks(1, 8) == (400, 800)
    assert only(8, 1200).clocks(1, 80) == (400, 8000)


def test_one_sample_of_one_iteration_is_all_outside() -> None:
    assert only(1, 1200).clocks(1, 1) == (1200, 0)
    assert only(1, 1200).clocks(1, 5) == (1200, 0)


def test_a_program_without_iterations_takes_what_it_takes() -> None:
    assert only(0, 1200).clocks(1, 0) == (1200, 0)


@pytest.mark.parametrize(("copies", "clocks"), [(1, 500), (2, 750), (3, 875), (4, 1000), (6, 1500), (8, 2000)])
def test_workgroups_between_and_past_those_simulated(copies: int, clocks: float) -> None:
    """Linear between two numbers of them, in proportion past the last."""
    assert sum(BOTH.clocks(copies, SHORT.trips)) == clocks


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 1e4), st.floats(0, 1e4))
def test_more_workgroups_and_more_iterations_take_no_less(a: int, b: int, x: float, y: float) -> None:
    few, many = sorted((a, b))
    short, long = sorted((x, y))
    assert sum(BOTH.clocks(few, short)) <= sum(BOTH.clocks(many, long)) * (1 + 1e-12)


def test_the_terms_of_a_prediction_have_their_units() -> None:
    assert set(UNITS.values()) == {"valu", "matrix", "lds"}


def test_json_and_back() -> None:
    assert Dynamics.from_dict(json.loads(json.dumps(BOTH.to_dict()))) == BOTH


def test_dynamics_of_facts() -> None:
    assert dynamics_of(facts()) is None
    assert dynamics_of(replace(facts(), extra={"dynamics_failed": "Hang"})) is None
    assert dynamics_of(replace(facts(), extra={DYNAMICS: BOTH.to_dict()})) == BOTH


def test_dynamics_survive_the_store() -> None:
    known = replace(facts(), extra={DYNAMICS: BOTH.to_dict(), "sections": 3})
    with Store.open("sqlite://") as store:
        store.commit_facts("k", known)
        found = store.facts("k")
    assert found == known
    assert found is not None
    assert dynamics_of(found) == BOTH
