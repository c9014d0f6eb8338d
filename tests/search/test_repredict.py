"""Stored candidates under other constants: from the store alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from m3gen import ops
from m3gen.compiler.pool import WorkerPool
from m3gen.evaluate import observed, predict, timing
from m3gen.evaluate.dynamics import DYNAMICS, TRACE, raw
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.launched import DUPLICATE_OF, LAUNCHES, Remembered, launched
from m3gen.evaluate.trace import Traces
from m3gen.search.repredict import Repredicted, repredict
from m3gen.space import Config
from m3gen.spec import Status
from m3gen.store import Store
from m3gen.targets import Vendor, default_device
from tests.evaluate.programs import trace
from tests.evaluate.test_waves import DRAIN, FAR, STRIDED
from tests.store import samples

DEVICE = default_device("gfx942")
OP = ops.get("sparse_decode")
PROBLEM = samples.problem(context=2048)
CONFIG = OP.field(PROBLEM, DEVICE)  # type: ignore[attr-defined]
WORK = OP.work(PROBLEM, CONFIG)
TRACES = Traces(tuple(trace(STRIDED + n * (FAR + DRAIN), trips=n) for n in (1, 2)), 0.5)
FACTS = [
    replace(
        samples.facts(number),
        kernel=work.kernel,
        extra={DYNAMICS: observed.simulated(TRACES, 2).to_dict(), TRACE: "trace"},
    )
    for number, work in enumerate(WORK)
]
KEYS = tuple(f"key-{number}" for number in range(len(FACTS)))


LAUNCHED = [Remembered(one.kernel, 64) for one in FACTS]
BEFORE = predict.predict(LAUNCHED, FACTS, WORK, DEVICE)


def judged(**environment: object) -> Evaluation:
    """As a session has it."""
    held = {"compiler": "triton-3.9.0", "source_sha": "source-1", "device": DEVICE.name, **environment}
    held[LAUNCHES] = launched(LAUNCHED, FACTS, WORK)
    return replace(BEFORE, facts=KEYS, environment=held)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        yield store


@pytest.fixture
def filled(store: Store) -> Iterator[Store]:
    """One candidate, judged by the constants of today."""
    for key, facts in zip(KEYS, FACTS, strict=True):
        store.commit_facts(key, raw(facts))
    store.commit_traces("trace", TRACES.to_bytes())
    store.commit_evaluation(store.begin({}, [PROBLEM]), PROBLEM, CONFIG, judged())
    return store


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> timing.Timing:
    """Another version: memory is further away. No worker starts."""

    def refuses(*arguments: object, **options: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(WorkerPool, "__init__", refuses)
    assert timing.AMD.latencies is not None
    other = replace(
        timing.AMD,
        version="predict-amd-99",
        latencies=replace(timing.AMD.latencies, far=10 * timing.AMD.latencies.far),
    )
    monkeypatch.setattr(observed, "AMD", other)
    monkeypatch.setitem(timing.TIMINGS, Vendor.AMD, other)
    return other


def test_other_constants_give_other_values(filled: Store, changed: timing.Timing) -> None:
    assert repredict(filled, filled.problems()) == Repredicted(new=1, known=0, lacking=0)
    before, after = (record.evaluation for record in filled.evaluations(PROBLEM, stage=Stage.PREDICTED))
    assert (after.judge, after.status) == (changed.version, Status.OK)
    assert after.value_us > before.value_us
    assert (after.facts, after.environment) == (before.facts, before.environment)
    again = [replace(one, extra={DYNAMICS: observed.simulated(TRACES, 2).to_dict()}) for one in FACTS]
    assert after.value_us == predict.predict(LAUNCHED, again, WORK, DEVICE).value_us
    assert filled.check() == []


def test_a_second_time_there_is_nothing_to_do(filled: Store, changed: timing.Timing) -> None:
    repredict(filled, filled.problems())
    assert repredict(filled, filled.problems()) == Repredicted(new=0, known=1, lacking=0)
    assert len(filled.evaluations(PROBLEM)) == 2


def test_the_version_of_today_knows_them_all(filled: Store) -> None:
    assert repredict(filled, filled.problems()) == Repredicted(new=0, known=1, lacking=0)


def test_a_duplicate_gets_the_time_of_its_original(filled: Store, changed: timing.Timing) -> None:
    """Their works differ where the machine code does not: a stage that the compiler did not make."""
    other = Config({**CONFIG, "num_stages": 7})
    twin = judged(**{DUPLICATE_OF: CONFIG.sha})
    filled.commit_evaluation(filled.begin({}, [PROBLEM]), PROBLEM, other, twin)
    assert repredict(filled, filled.problems()).new == 2
    first, second = (r.evaluation for r in filled.evaluations(PROBLEM, judge=changed.version))
    assert first.value_us == second.value_us


def test_rows_that_remember_too_little_are_counted(filled: Store, changed: timing.Timing) -> None:
    environment = {"compiler": "triton-3.9.0", "source_sha": "older", "device": DEVICE.name}
    older = replace(judged(), environment=environment)
    lost = judged(source_sha="lost")
    lost.environment[LAUNCHES][0]["trace"] = "gone"  # type: ignore[index]
    session = filled.begin({}, [PROBLEM])
    for one in (older, lost):
        filled.commit_evaluation(session, PROBLEM, CONFIG, one)
    assert repredict(filled, filled.problems()) == Repredicted(new=1, known=0, lacking=2)


def test_failures_are_left_as_they_are(filled: Store, changed: timing.Timing) -> None:
    failed = samples.failed(Status.COMPILE, environment={"source_sha": "broken"})
    filled.commit_evaluation(filled.begin({}, [PROBLEM]), PROBLEM, CONFIG, failed)
    assert repredict(filled, filled.problems()) == Repredicted(new=1, known=0, lacking=0)


def test_what_the_predictor_refuses_to_judge_is_refused_anew(
    filled: Store, changed: timing.Timing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that predicts no kernels that spill would else bring them back from the store as winners."""
    monkeypatch.setattr("m3gen.search.repredict.spilling", lambda facts: "spills")
    assert repredict(filled, [PROBLEM]) == Repredicted(new=1, known=0, lacking=0)
    newest = filled.evaluations(PROBLEM)[-1].evaluation
    assert (newest.status, newest.reason, newest.judge) == (Status.RESOURCES, "spills", changed.version)


def test_a_baseline_that_spills_is_predicted_all_the_same(
    store: Store, changed: timing.Timing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, facts in zip(KEYS, FACTS, strict=True):
        store.commit_facts(key, raw(facts))
    store.commit_traces("trace", TRACES.to_bytes())
    store.commit_evaluation(store.begin({}, [PROBLEM]), PROBLEM, CONFIG, judged(baseline=True))
    monkeypatch.setattr("m3gen.search.repredict.spilling", lambda facts: "spills")
    repredict(store, [PROBLEM])
    assert store.evaluations(PROBLEM)[-1].evaluation.ok


@pytest.mark.parametrize(("name", "new"), [("trace", 0), ("trace-whole", 1)])
def test_traces_without_what_the_last_to_arrive_does_predict_nothing(
    store: Store, changed: timing.Timing, name: str, new: int
) -> None:
    facts = [replace(one, mix={**one.mix, "atomic": 1}, extra={**one.extra, TRACE: name}) for one in FACTS]
    for key, one in zip(KEYS, facts, strict=True):
        store.commit_facts(key, raw(one))
    store.commit_traces(name, TRACES.to_bytes())
    held = {**judged().environment, LAUNCHES: launched(LAUNCHED, facts, WORK)}
    store.commit_evaluation(store.begin({}, [PROBLEM]), PROBLEM, CONFIG, replace(judged(), environment=held))
    assert repredict(store, [PROBLEM]) == Repredicted(new=new, known=0, lacking=1 - new)
