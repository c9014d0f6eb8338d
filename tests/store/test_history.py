"""Sessions and failures as the store remembers them."""

from __future__ import annotations

from dataclasses import replace

from m3gen.evaluate.evaluation import Stage
from m3gen.spec import Status
from m3gen.store import FailureCount, SessionRecord, Store
from m3gen.store.records import GATE
from tests.store.samples import config, failed, predicted, problem, verified

ELSEWHERE = problem(arch="gfx950", compute_units=256)


def test_an_empty_store_has_none(store: Store) -> None:
    assert store.sessions() == []
    assert store.failures() == []


def test_sessions_come_oldest_first(store: Store) -> None:
    first = store.begin({"budget": "200"}, [problem(), problem(rows=16)])
    store.end(first, "budget")
    second = store.begin({}, [])
    one, two = store.sessions()
    assert one == SessionRecord(
        id=first,
        state="budget",
        started_at=one.started_at,
        seconds=one.seconds,
        problems=2,
        arguments={"budget": "200"},
    )
    assert one.started_at < two.started_at
    assert one.seconds > 0
    assert (two.id, two.state, two.problems, two.seconds) == (second, "running", 0, 0.0)


def test_sessions_of_an_architecture_or_op_count_its_problems(store: Store) -> None:
    both = store.begin({}, [problem(), problem(rows=16), ELSEWHERE])
    store.begin({}, [problem()])
    (found,) = store.sessions(arch="gfx950", op="sparse_decode")
    assert (found.id, found.problems) == (both, 1)
    assert [one.problems for one in store.sessions(arch="gfx942")] == [2, 1]
    assert store.sessions(op="merge") == []


def test_failures_are_counted_by_stage_status_and_rule(store: Store) -> None:
    session = store.begin({}, [problem()])
    refused = failed(Status.CONSTRAINT, stage=Stage.STATIC, code="lds", reason="too large")
    found = [
        refused,
        replace(refused, code="warps"),
        replace(refused, reason="far too large"),
        failed(Status.TIMEOUT, reason="killed"),
        predicted(5.0),
    ]
    for number, evaluation in enumerate(found):
        store.commit_evaluation(session, problem(), config(number), evaluation)
    assert [(one.stage, one.status, one.code, one.count) for one in store.failures()] == [
        ("static", Status.CONSTRAINT, "lds", 2),
        ("predicted", Status.TIMEOUT, "", 1),
        ("static", Status.CONSTRAINT, "warps", 1),
    ]
    assert store.failures()[1] == FailureCount(
        op="sparse_decode",
        arch="gfx942",
        stage="predicted",
        status=Status.TIMEOUT,
        code="",
        count=1,
        example="killed",
    )
    assert store.failures()[0].example in ("too large", "far too large")


def test_a_failure_counts_on_every_problem_and_a_verdict_once(store: Store) -> None:
    session = store.begin({}, [])
    for rows in (1, 16, 64):
        store.commit_evaluation(session, problem(rows=rows), config(1), failed(Status.COMPILE_ABORT))
    store.commit_verification(problem(), config(1), verified(Status.CORRECTNESS, reason="off"))
    store.commit_verification(problem(), config(2), verified())
    assert [(one.stage, one.status, one.count) for one in store.failures()] == [
        ("predicted", Status.COMPILE_ABORT, 3),
        (GATE, Status.CORRECTNESS, 1),
    ]


def test_failures_of_an_architecture_or_op(store: Store) -> None:
    session = store.begin({}, [])
    for one in (problem(), ELSEWHERE):
        store.commit_evaluation(session, one, config(1), failed(Status.COMPILE))
        store.commit_verification(one, config(1), verified(Status.CORRECTNESS))
    assert [one.arch for one in store.failures(arch="gfx950")] == ["gfx950"] * 2
    assert len(store.failures(op="sparse_decode")) == 4
    assert store.failures(op="merge") == []
