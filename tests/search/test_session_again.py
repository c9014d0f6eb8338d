"""A session run again: what the store knows is not done anew."""

from __future__ import annotations

import pytest

from tests.search.fakes import DEVICE, Bench, Dies, problem


@pytest.mark.parametrize("budget", ["12", "1000"])
def test_a_second_run_does_nothing_and_says_the_same(bench: Bench, budget: str):
    first = bench.session(budget=budget).run()
    compiles, verifications, pools = len(bench.compiles), len(bench.verifications), len(bench.pools)
    second = bench.session(budget=budget).run()
    assert second.ended == "nothing to do"
    assert (len(bench.compiles), len(bench.verifications), len(bench.pools)) == (
        compiles,
        verifications,
        pools,
    )
    assert second.rows == first.rows
    assert second.progress.stored == first.progress.evaluated


def test_a_second_run_of_a_spent_time_budget_does_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def tick() -> None:
        bench.now += 10.0

    bench.on_poll = tick
    monkeypatch.setattr("m3gen.store.store.time.monotonic", lambda: bench.now)
    bench.session(budget="55s").run()
    compiles = len(bench.compiles)
    assert bench.session(budget="55s").run().ended == "nothing to do"
    assert len(bench.compiles) == compiles
    assert bench.session(budget="2m").run().ended == "budget"
    assert len(bench.compiles) > compiles


def test_a_partial_run_is_resumed_with_the_difference(bench: Bench):
    class Killed(BaseException):
        pass

    def kill_at_seven() -> None:
        if len(bench.compiles) == 7:
            raise Killed

    bench.on_poll = kill_at_seven
    with pytest.raises(Killed):
        bench.session(budget="20").run()
    assert len(bench.store.evaluations(problem())) == 7
    bench.on_poll = lambda: None
    bench.session(budget="20").run()
    assert len(bench.compiles) == 20
    assert len({config for _, config in bench.compiles}) == 20


def test_a_larger_budget_goes_on(bench: Bench):
    bench.session(budget="10").run()
    result = bench.session(budget="15").run()
    assert result.ended == "budget"
    assert len(bench.compiles) == 15
    assert result.progress.stored == 10


def test_a_changed_template_is_evaluated_anew(bench: Bench):
    bench.session(budget="10").run()
    bench.template = "v2"
    bench.session(budget="10").run()
    assert len(bench.compiles) == 20


def test_another_predictor_predicts_anew_and_failures_stay(bench: Bench):
    bad = bench.op.default(problem(), DEVICE)
    bench.faults[bad] = Dies()
    bench.session(budget="10").run()
    bench.judge = "predict-fake-2"
    bench.session(budget="10").run()
    assert [config for _, config in bench.compiles].count(bad) == 1
    assert len(bench.compiles) == 10 + 9
