"""A session run again: what the store knows is not done anew."""

from __future__ import annotations

import pytest

from m3gen.space import Choice, Config, Space
from m3gen.spec import Problem
from m3gen.targets import Device
from m3gen.testing.fake_op import FakeOp
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


class Ordered(FakeOp):
    """A fake op whose space has come to have another parameter."""

    def space(self, problem: Problem, device: Device) -> Space:
        plain = super().space(problem, device)
        return Space([*plain.parameters, Choice("order", ("own", "other"), default="own")], plain.constraints)

    def default(self, problem: Problem, device: Device) -> Config:
        return Config({**super().default(problem, device), "order": "own"})


def test_a_config_of_an_older_space_neither_counts_nor_wins(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Under the default of the new parameter it renders the same text, so that the text alone would let it hold."""

    def same_text(op: object, problem: Problem, config: Config) -> str:
        return Config({name: value for name, value in config.items() if name != "order"}).sha

    monkeypatch.setattr(bench, "_source_sha", same_text)
    bench.session(budget="40").run()
    old = {record.config for record in bench.store.evaluations(problem())}
    bench.op = Ordered()
    compiles = len(bench.compiles)
    result = bench.session(budget="66").run()
    assert result.progress.stored == 0
    assert {config for _, config in bench.compiles[compiles:]}.isdisjoint(old)
    assert all("order" in row.config for row in result.rows)
    assert [row.value_us for row in result.rows] == [1.0]
