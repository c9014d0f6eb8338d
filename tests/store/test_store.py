from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.verification import CaseResult
from m3gen.spec import Status
from m3gen.store import Store, arguments_sha, signature
from tests.store import samples
from tests.store.samples import config, failed, measured, predicted, problem, verified

TIME = st.none() | st.floats(min_value=0, allow_nan=False, allow_infinity=False)
SHORT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@pytest.fixture
def session(store: Store) -> int:
    return store.begin({"budget": "200"}, [problem()])


def only(store: Store) -> Evaluation:
    (record,) = store.evaluations(problem())
    return record.evaluation


def test_parent_process_stays_light() -> None:
    script = "import sys, m3gen.store; sys.exit(bool({'torch', 'triton', 'alembic'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=samples.ROOT)


# -- traces


def test_traces_are_kept_once_by_name(store: Store) -> None:
    assert store.traces("code-4x0-1-2") is None
    assert store.commit_traces("code-4x0-1-2", b"\0\xffraw")
    assert not store.commit_traces("code-4x0-1-2", b"other")
    assert store.traces("code-4x0-1-2") == b"\0\xffraw"


def test_problems_are_those_that_were_evaluated(store: Store) -> None:
    asked = [problem(), problem(rows=64), problem(arch="gfx950", compute_units=256)]
    session = store.begin({}, [*asked, problem(rows=16)])
    for one in asked:
        store.commit_evaluation(session, one, config(), predicted(10.0))
    assert store.problems() == sorted(asked)
    assert store.problems(arch="gfx950") == asked[2:]


# -- sessions


def test_session_counts_its_seconds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 107.5, 110.0, 500.0, 503.0])
    monkeypatch.setattr("m3gen.store.store.time.monotonic", lambda: next(clock))
    sha = arguments_sha({"budget": "10m"}, [problem()])
    assert store.spent_seconds(sha) == 0
    first = store.begin({"budget": "10m"}, [problem()])
    store.commit_evaluation(first, problem(), config(), predicted(10.0))
    assert store.spent_seconds(sha) == 7.5  # as if it had been killed now
    store.end(first, "interrupted")
    assert store.spent_seconds(sha) == 10.0
    second = store.begin({"budget": "10m"}, [problem()])
    store.end(second, "budget")
    assert store.spent_seconds(sha) == 13.0


def test_other_arguments_or_problems_are_another_budget() -> None:
    here = arguments_sha({"budget": "10m"}, [problem(), problem(rows=64)])
    assert here == arguments_sha({"budget": "10m"}, [problem(rows=64), problem()])
    assert here != arguments_sha({"budget": "20m"}, [problem(), problem(rows=64)])
    assert here != arguments_sha({"budget": "10m"}, [problem()])


def test_session_of_no_problem_twice_the_same(store: Store) -> None:
    assert store.begin({}, [problem(), problem()]) != store.begin({}, [])
    assert store.check() == []


def test_evaluation_needs_a_running_session(store: Store, session: int) -> None:
    store.end(session, "budget")
    with pytest.raises(KeyError):
        store.commit_evaluation(session, problem(), config(), predicted(10.0))
    with pytest.raises(KeyError):
        store.end(session, "budget")
    assert store.evaluations(problem()) == []


# -- facts


def test_facts_come_back(store: Store) -> None:
    assert store.facts("key") is None
    assert store.commit_facts("key", samples.facts())
    assert store.facts("key") == samples.facts()


def test_facts_of_one_key_are_never_replaced(store: Store) -> None:
    assert store.commit_facts("key", samples.facts(1))
    assert not store.commit_facts("key", samples.facts(2))
    assert store.facts("key") == samples.facts(1)


def test_facts_keep_numbers_that_are_none(store: Store) -> None:
    store.commit_facts("key", replace(samples.facts(), extra={"ratio": math.inf}))
    found = store.facts("key")
    assert isinstance(found, KernelFacts)
    assert found.extra == {"ratio": math.inf}


# -- evaluations

EVALUATIONS = st.builds(
    Evaluation,
    stage=st.sampled_from(Stage),
    status=st.sampled_from([status for status in Status if status is not Status.OK]),
    judge=SHORT,
    value_us=TIME,
    low_us=TIME,
    high_us=TIME,
    terms=st.dictionaries(SHORT, st.floats(allow_nan=False), max_size=3),
    limit=SHORT,
    code=SHORT,
    reason=SHORT,
    samples_us=st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
    seconds=st.floats(min_value=0, max_value=1e6),
    facts=st.lists(st.sampled_from(["key-1", "key-2"]), max_size=3).map(tuple),
    environment=st.dictionaries(SHORT, st.none() | st.integers() | SHORT | st.lists(st.booleans()), max_size=3),
)


@given(EVALUATIONS)
@settings(max_examples=50, deadline=None)
def test_evaluation_comes_back_whole(evaluation: Evaluation) -> None:
    with Store.open("sqlite://") as store:
        for key in ("key-1", "key-2"):
            store.commit_facts(key, samples.facts())
        session = store.begin({}, [problem()])
        assert store.commit_evaluation(session, problem(), config(), evaluation)
        assert only(store) == evaluation
        assert isinstance(only(store).stage, Stage)
        assert isinstance(only(store).status, Status)


def test_records_are_in_the_order_of_their_commits(store: Store, session: int) -> None:
    for number in (3, 1, 2):
        store.commit_evaluation(session, problem(), config(number), predicted(10.0 + number))
    found = store.evaluations(problem())
    assert [record.config for record in found] == [config(3), config(1), config(2)]
    assert sorted(record.created_at for record in found) == [record.created_at for record in found]
    assert all(record.created_at.endswith("+00:00") for record in found)


def test_evaluations_by_stage_and_judge(store: Store, session: int) -> None:
    one, two, three = predicted(9.0), predicted(8.0, judge="predict-amd-2"), measured(7.0)
    for evaluation in (one, two, three):
        store.commit_evaluation(session, problem(), config(), evaluation)

    def found(**filters: Any) -> list[Evaluation]:
        return [record.evaluation for record in store.evaluations(problem(), **filters)]

    assert found() == [one, two, three]
    assert found(stage=Stage.PREDICTED) == [one, two]
    assert found(judge="predict-amd-2") == [two]
    assert found(stage=Stage.MEASURED, judge="predict-amd-2") == []
    assert store.evaluations(problem(rows=64)) == []


def test_same_identity_again_changes_nothing(store: Store, session: int) -> None:
    store.commit_facts("key", samples.facts())
    first = predicted(10.0, facts=("key",))
    assert store.commit_evaluation(session, problem(), config(), first)
    assert not store.commit_evaluation(session, problem(), config(), predicted(5.0, facts=("key", "key")))
    assert only(store) == first
    assert store.check() == []


@pytest.mark.parametrize(
    "change",
    [
        {"stage": Stage.MEASURED},
        {"judge": "predict-amd-2"},
        {"facts": ("key-b",)},
        {"environment": {"compiler": "triton-3.6.0"}},
        {"environment": {"source_sha": "source-2"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_identity_is_what_was_judged_and_by_whom(store: Store, session: int, change: dict[str, Any]) -> None:
    store.commit_facts("key-b", samples.facts(compiler="triton-3.8.0"))
    assert store.commit_evaluation(session, problem(), config(), predicted(10.0))
    assert store.commit_evaluation(session, problem(), config(), predicted(10.0, **change))
    assert len(store.evaluations(problem())) == 2


def test_true_and_one_are_two_configs(store: Store, session: int) -> None:
    for value in (True, 1):
        assert store.commit_evaluation(session, problem(), type(config())({"FUSED": value}), predicted(10.0))
    assert [record.config["FUSED"] for record in store.evaluations(problem())] == [True, 1]
    assert store.check() == []


def test_facts_come_before_the_evaluation(store: Store, session: int) -> None:
    with pytest.raises(ValueError, match="facts key of an evaluation are not in the store"):
        store.commit_evaluation(session, problem(), config(), predicted(10.0, facts=("key",)))
    assert store.evaluations(problem()) == []


@pytest.mark.parametrize(
    "change", [{"value_us": math.nan}, {"high_us": math.inf}, {"value_us": None}, {"value_us": 0.0}]
)
def test_no_score_without_a_number(store: Store, session: int, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"value_us|high_us"):
        store.commit_evaluation(session, problem(), config(), replace(predicted(10.0), **change))


def test_reason_may_be_the_tail_of_anything(store: Store, session: int) -> None:
    tail = "LLVM ERROR: \0 " + b"\xff".decode("utf-8", "surrogateescape")
    store.commit_evaluation(session, problem(), config(), failed(Status.COMPILE_ABORT, reason=tail))
    assert only(store).reason == r"LLVM ERROR: \x00 \udcff"


# -- verifications


def test_verification_comes_back(store: Store) -> None:
    broken = CaseResult(
        name="nan", grid="(1,)", status=Status.CORRECTNESS, row_rms=math.inf, mean_abs=0.5, max_abs=math.inf
    )
    verdict = verified(Status.CORRECTNESS, cases=(broken,), reason="case nan", environment={"triton": "3.9.0"})
    assert store.commit_verification(problem(), config(), verdict)
    assert store.verification(problem(), config(), "source-1") == verdict


def test_nan_in_a_case_survives(store: Store) -> None:
    case = replace(verified().cases[0], row_rms=math.nan)
    store.commit_verification(problem(), config(), verified(Status.CORRECTNESS, cases=(case,)))
    found = store.verification(problem(), config(), "source-1")
    assert found is not None
    assert math.isnan(found.cases[0].row_rms)


def test_verification_holds_for_every_load_of_a_signature(store: Store) -> None:
    store.commit_verification(problem(rows=1), config(), verified())
    assert store.verification(problem(rows=64, context=1024), config(), "source-1") == verified()
    assert store.verification(problem(kv_heads=2), config(), "source-1") is None
    assert store.verification(problem(), config(1), "source-1") is None
    assert store.verification(problem(), config(), "source-2") is None
    assert store.signature(problem()) == signature(problem(rows=64))


def test_verification_again_changes_nothing(store: Store) -> None:
    assert store.commit_verification(problem(), config(), verified())
    assert not store.commit_verification(problem(), config(), verified(Status.TIMEOUT))
    assert store.verification(problem(), config(), "source-1") == verified()


def test_a_verification_that_timed_out_gives_way_to_a_verdict(store: Store) -> None:
    assert store.commit_verification(problem(), config(), verified(Status.TIMEOUT))
    assert store.commit_verification(problem(), config(), verified())
    assert store.verification(problem(), config(), "source-1") == verified()


def test_strongest_witness_is_heard(store: Store) -> None:
    wrong = verified(Status.CORRECTNESS, on="gpu")
    store.commit_verification(problem(), config(), wrong)
    store.commit_verification(problem(), config(), verified(on="machine-code"))
    store.commit_verification(problem(), config(), verified(on="interpreter"))
    assert store.verification(problem(), config(), "source-1") == wrong


def test_a_weaker_witness_is_none_where_a_stronger_is_asked_for(store: Store) -> None:
    store.commit_verification(problem(), config(), verified(on="interpreter"))
    assert store.verification(problem(), config(), "source-1", at_least="machine-code") is None
    store.commit_verification(problem(), config(), verified(on="gpu"))
    assert store.verification(problem(), config(), "source-1", at_least="machine-code") == verified(on="gpu")


def test_machine_code_of_another_compiler_gives_way(store: Store) -> None:
    first, second = (verified(on="machine-code", environment={"compiler": name}) for name in ("one", "two"))
    assert store.commit_verification(problem(), config(), first)
    assert store.commit_verification(problem(), config(), second)
    assert not store.commit_verification(problem(), config(), second)
    assert store.verification(problem(), config(), "source-1") == second


# -- the whole


def test_many_evaluations_are_read_by_two_queries(store: Store, session: int) -> None:
    """One query per row would be found out by the count, whatever the speed of the machine."""
    store.commit_facts("key", samples.facts())
    for number in range(50):
        store.commit_evaluation(session, problem(), config(number), predicted(1.0 + number, facts=("key", "key")))
    connection = store._engine.raw_connection()
    statements: list[str] = []
    connection.driver_connection.set_trace_callback(statements.append)  # type: ignore[union-attr]
    connection.close()
    assert len(store.evaluations(problem())) == 50
    assert sum(statement.startswith("SELECT") for statement in statements) == 2


def test_reader_reads_while_a_writer_writes(store: Store, session: int, url: str) -> None:
    with Store.open(url, read_only=True) as reader:
        for number in range(3):
            store.commit_evaluation(session, problem(), config(number), predicted(10.0))
            assert len(reader.evaluations(problem())) == number + 1
        assert reader.check() == []


def test_closing_twice(url: str) -> None:
    store = Store.open(url)
    store.close()
    store.close()


def test_no_row_of_a_failed_commit_stays(store: Store, session: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "_count_seconds", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.commit_evaluation(session, problem(rows=64), config(), predicted(10.0))
    tables = sqlite3.connect(str(store.location))
    assert tables.execute("SELECT count(*) FROM evaluations").fetchone() == (0,)
    assert tables.execute("SELECT count(*) FROM configs").fetchone() == (0,)
