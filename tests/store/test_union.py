"""Two databases as one: by content, all or nothing, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.evaluate.trace import Traces
from m3gen.spec import Status
from m3gen.store import Store
from tests.store.samples import config, facts, failed, predicted, problem, verified

NO_TRACES = Traces((), 0.0).to_bytes()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as opened:
        yield opened


def fill(store: Store, *numbers: int, value_us: float = 10.0) -> int:
    """A session that evaluates and verifies the configs of these numbers."""
    session = store.begin({"seed": numbers[0]}, [problem()])
    for number in numbers:
        store.commit_facts(f"key{number}", facts(number))
        store.commit_traces(f"{facts(number).code_sha}-4x0-1-{number}", NO_TRACES)
        evaluation = predicted(value_us + number, facts=(f"key{number}",), environment={"source_sha": "source-1"})
        store.commit_evaluation(session, problem(), config(number), evaluation)
        store.commit_verification(problem(), config(number), verified())
    store.end(session, "done")
    return session


def test_what_one_has_the_other_gets(store: Store, other: Store) -> None:
    fill(store, 0, 1)
    fill(other, 1, 2)
    merged = store.merge(other)
    assert merged.new == {
        "configs": 1,
        "kernel_facts": 1,
        "kernel_traces": 1,
        "sessions": 1,
        "evaluations": 1,
        "verifications": 1,
    }
    assert merged.differing == []
    found = store.evaluations(problem())
    assert {record.config for record in found} == {config(n) for n in (0, 1, 2)}
    assert all(record.evaluation.facts for record in found)
    assert store.facts("key2") == facts(2)
    assert [winner.config for winner in store.winners()] == [config(0)]
    assert len(store.sessions()) == 2
    assert store.check() == []


def test_merging_again_changes_nothing(store: Store, other: Store) -> None:
    fill(other, 1, 2)
    store.merge(other)
    assert store.merge(other).new == {}
    assert store.evaluations(problem()) == other.evaluations(problem())


def test_another_result_is_named_and_what_is_here_stays(store: Store, other: Store) -> None:
    fill(store, 1, value_us=10.0)
    fill(other, 1, value_us=20.0)
    merged = store.merge(other)
    assert len(merged.differing) == 1
    assert "ok 11.0 here, ok 21.0 there" in merged.differing[0]
    assert store.evaluations(problem())[0].evaluation.value_us == 11.0


def test_another_verdict_is_named(store: Store, other: Store) -> None:
    store.commit_verification(problem(), config(), verified())
    other.commit_verification(problem(), config(), verified(Status.CORRECTNESS))
    assert "ok here, correctness there" in store.merge(other).differing[0]


def test_a_merge_that_fails_leaves_nothing(store: Store, other: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(other, 1)

    def broken(*_: object) -> None:
        raise RuntimeError("the cable")

    monkeypatch.setattr("m3gen.store.union._verifications", broken)
    with pytest.raises(RuntimeError, match="the cable"):
        store.merge(other)
    assert store.info().rows["evaluations"] == store.info().rows["problems"] == 0


# Pruning


def judged(store: Store, judge: str, number: int = 0, **changes: object) -> None:
    session = store.begin({}, [problem(**changes)])
    store.commit_facts(f"{judge}{number}", facts(number))
    evaluation = predicted(10.0, judge=judge, facts=(f"{judge}{number}",))
    store.commit_evaluation(session, problem(**changes), config(number), evaluation)


def test_an_older_version_of_a_judge_goes_where_a_newer_has_judged(store: Store) -> None:
    judged(store, "predict-amd-2")
    judged(store, "predict-amd-10")
    judged(store, "predict-amd-2", rows=16)  # nobody newer has judged it
    pruned = store.prune()
    assert (pruned.evaluations, pruned.facts) == (1, 0)  # the facts are those of the other problem as well
    assert [record.evaluation.judge for record in store.evaluations(problem())] == ["predict-amd-10"]
    assert len(store.evaluations(problem(rows=16))) == 1
    assert store.check() == []


def test_a_dry_run_counts_and_changes_nothing(store: Store) -> None:
    judged(store, "predict-amd-1")
    judged(store, "predict-amd-2", 1)
    before = store.info()
    pruned = store.prune(dry_run=True)
    assert (pruned.evaluations, pruned.facts, pruned.configs) == (1, 1, 1)
    assert store.info() == before


def test_traces_go_with_the_machine_code_they_are_of(store: Store) -> None:
    judged(store, "predict-amd-1", 1)
    judged(store, "predict-amd-2", 2)
    names = [f"{facts(number).code_sha}-4x0-1" for number in (1, 2)]
    for name in names:
        store.commit_traces(name, NO_TRACES)
    assert store.prune().traces == 1
    assert [store.traces(name) is None for name in names] == [True, False]


def test_a_judge_by_name(store: Store) -> None:
    judged(store, "measure-1")
    judged(store, "predict-amd-1", 1)
    assert store.prune(["measure-1"]).evaluations == 1
    assert [record.evaluation.judge for record in store.evaluations(problem())] == ["predict-amd-1"]


def test_a_verified_config_stays(store: Store) -> None:
    session = store.begin({}, [problem()])
    store.commit_evaluation(session, problem(), config(), failed(Status.COMPILE))
    store.commit_verification(problem(), config(), verified())
    assert store.prune(["predict-amd-1"]).configs == 0
    assert store.verification(problem(), config(), "source-1") is not None


def test_vacuum_gives_the_space_back(store: Store) -> None:
    session = store.begin({}, [problem()])
    for number in range(200):
        store.commit_facts(f"key{number}", facts(number))
        evaluation = predicted(10.0, facts=(f"key{number}",), reason="x" * 500)
        store.commit_evaluation(session, problem(), config(number), evaluation)
    store.vacuum()
    full = store.location.path.stat().st_size  # type: ignore[union-attr]
    store.prune(["predict-amd-1"])
    before, after = store.vacuum()
    assert after < full
    assert after <= before
    assert store.check() == []
