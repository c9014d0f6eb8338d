"""Bad candidates cost a session themselves and no more."""

from __future__ import annotations

import pytest

from m3gen.spec import Status
from tests.search.fakes import DEVICE, AsksTooMuch, Bench, Dies, Hangs, problem, whole_space


@pytest.mark.parametrize(
    ("fault", "status"),
    [(Dies(), Status.COMPILE_ABORT), (Hangs(), Status.TIMEOUT), (AsksTooMuch(), Status.RESOURCES)],
)
def test_a_bad_candidate_costs_only_itself(bench: Bench, fault: Exception, status: Status):
    bad = bench.op.best(problem())
    bench.faults[bad] = fault
    result = bench.session(budget="1000").run()
    assert result.ended == "exhausted"
    failed = [r for r in bench.store.evaluations(problem()) if not r.evaluation.ok]
    assert [(r.config, r.evaluation.status) for r in failed] == [(bad, status)]
    assert failed[0].evaluation.reason
    assert result.progress.failed == {status: 1}
    assert result.rows[0].value_us == 2.0


def test_a_default_that_fails_leaves_no_ratio(bench: Bench):
    bench.faults[bench.op.default(problem(), DEVICE)] = Dies()
    (row,) = bench.session(budget="1000").run().rows
    assert (row.baseline_us, row.ratio) == (None, None)


def test_what_the_static_rung_refuses_is_never_compiled(bench: Bench):
    bench.refused = set(whole_space(bench)[:10])
    result = bench.session(budget="1000").run()
    assert len(bench.compiles) == 23
    assert result.progress.failed == {Status.CONSTRAINT: 10}
    assert bench.session(budget="1000").run().ended == "nothing to do"


def test_everything_failing_ends_without_winners(bench: Bench):
    bench.faults = dict.fromkeys(whole_space(bench), Dies())
    result = bench.session(budget="1000").run()
    assert (result.ended, result.rows) == ("exhausted", ())


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_prediction_that_cannot_be_is_implausible(bench: Bench, value: float):
    bench.cost = lambda us: value if us == 1.0 else us
    result = bench.session(budget="1000").run()
    assert result.progress.failed == {Status.IMPLAUSIBLE: 1}
    assert result.rows[0].value_us == 2.0


def test_a_predictor_that_raises_costs_only_the_candidate(bench: Bench):
    def trip(us: float) -> float:
        if us == 1.0:
            raise ZeroDivisionError("no waves")
        return us

    bench.cost = trip
    result = bench.session(budget="1000").run()
    assert result.progress.failed == {Status.RUNTIME: 1}
    assert result.rows[0].value_us == 2.0
