"""`repredict`: every stored prediction made again by the predictor of today, from stored facts and traces alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.dynamics import DYNAMICS
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.launched import DUPLICATE_OF, LAUNCHES, Remembered
from m3gen.evaluate.observed import is_whole, simulated
from m3gen.evaluate.predict import predict
from m3gen.evaluate.spills import spilling
from m3gen.evaluate.timing import TIMINGS
from m3gen.evaluate.trace import Traces
from m3gen.search.judging import failure, sound
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Record, Store
from m3gen.targets import device


@dataclass(frozen=True, slots=True)
class Repredicted:
    """Evaluations: `new` ones, those that this version had judged before (`known`), and those that remember too little
    of their launches (`lacking`: of an older m3gen)."""

    new: int
    known: int
    lacking: int


def repredict(
    store: Store, problems: Sequence[Problem], tick: Callable[[int], object] = lambda _: None
) -> Repredicted:
    """Add to the store a row of the predictor's version for every candidate that another version predicted.

    Nothing is compiled and nothing is run. Rows are the newer the later: of several versions the newest speaks for a
    candidate. `tick` hears how many rows are new so far.
    """
    versions = {TIMINGS[device_of(problem).architecture.vendor].version for problem in problems}
    session = store.begin({"repredict": sorted(versions)}, problems)
    again = _Again(store)
    new = known = lacking = 0
    state = "failed"
    try:
        for problem in problems:
            records = store.evaluations(problem, stage=Stage.PREDICTED)
            configs = {record.config.sha: record.config for record in records}
            for record in _newest(records):
                if record.evaluation.judge in versions:
                    known += 1
                    continue
                judged = configs.get(str(record.evaluation.environment.get(DUPLICATE_OF)), record.config)
                if (found := again.evaluation(problem, judged, record.evaluation)) is None:
                    lacking += 1
                else:
                    new += store.commit_evaluation(session, problem, record.config, found)
                    tick(new)
        state = "exhausted"
    finally:
        store.end(session, state)
    return Repredicted(new, known, lacking)


def _newest(records: Sequence[Record]) -> Iterator[Record]:
    """Of each config, compiler and source the last record of those whose kernels were predicted."""
    found = {}
    for record in records:
        evaluation = record.evaluation
        if evaluation.facts and evaluation.status in (Status.OK, Status.IMPLAUSIBLE):
            held = evaluation.environment
            found[record.config, str(held.get("compiler")), str(held.get("source_sha"))] = record
    yield from found.values()


class _Again:
    """Predicts from what a store holds. Facts and simulations are read and made once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._facts = cache(store.facts)
        self._simulated = cache(self._simulate)

    def evaluation(self, problem: Problem, config: Config, before: Evaluation) -> Evaluation | None:
        """What the launches of an evaluation take as those of `config`; None when the store knows too little."""
        held = before.environment
        facts, launches = [], []
        if not held.get(LAUNCHES):
            return None
        for key, one in zip(before.facts, held[LAUNCHES], strict=True):
            if (found := self._with_dynamics(key, one["trace"])) is None:
                return None
            facts.append(found)
            launches.append(Remembered(one["kernel"], one["programs"]))
        if not held.get("baseline") and (reason := spilling(facts)):
            judge = TIMINGS[device_of(problem).architecture.vendor].version
            return replace(failure(Status.RESOURCES, reason), judge=judge, environment=held)
        evaluation = predict(launches, facts, ops.get(problem.op).work(problem, config), device(held["device"]))
        return replace(sound(evaluation), facts=before.facts, environment=held)

    def _with_dynamics(self, key: str, trace: str) -> KernelFacts | None:
        """Facts as a worker would have answered them; None when the store lacks them or the traces."""
        facts = self._facts(key)
        if facts is None or not trace:
            return facts
        if not is_whole(trace, facts):
            return None
        dynamics = self._simulated(trace, facts.workgroups_per_cu)
        return None if dynamics is None else replace(facts, extra={**facts.extra, DYNAMICS: dynamics})

    def _simulate(self, trace: str, workgroups_per_cu: int) -> Mapping[str, object] | None:
        data = self._store.traces(trace)
        return None if data is None else simulated(Traces.from_bytes(data), workgroups_per_cu).to_dict()
