"""From a worker's answer about one candidate to an evaluation for each of its problems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate import launched
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.rungs import ANALYTIC_MARGIN, PRIOR_MARGIN, STOPPED, can_win
from m3gen.evaluate.spills import spilling
from m3gen.search.executor import Done
from m3gen.search.rooms import Rooms
from m3gen.search.schedule import Candidate
from m3gen.search.study import Study
from m3gen.spec import Status
from m3gen.targets import Device

# Judge of what failed before anything could be predicted; such a verdict outlives the predictor's version.
COMPILE_JUDGE = "compile-1"


class Compiled(Protocol):
    """What judging reads of `compiler.request.CompileResult`."""

    @property
    def status(self) -> Status: ...
    @property
    def reason(self) -> str: ...
    @property
    def launches(self) -> tuple[tuple[Launch, ...], ...]: ...
    @property
    def keys(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def facts(self) -> Mapping[str, KernelFacts]: ...
    @property
    def templates(self) -> Mapping[str, str]: ...
    @property
    def compiled(self) -> int: ...
    @property
    def cached(self) -> int: ...
    @property
    def traces(self) -> Mapping[str, bytes]: ...


class Judge:
    """Turns answers into evaluations for one device; `environment` is what each of them holds for."""

    def __init__(self, rooms: Rooms, device: Device) -> None:
        self._rooms = rooms
        self._device = device
        self.version = rooms.judge(device)
        self.compiler = rooms.compiler()

    def environment(self, candidate: Candidate) -> dict[str, Any]:
        return {
            "compiler": self.compiler,
            "source_sha": candidate.group.source(candidate.config),
            "device": self._device.name,
        }

    def holds(self, evaluation: Evaluation, source_sha: str) -> bool:
        """Whether a stored evaluation still says what judging anew would say."""
        environment = evaluation.environment
        if environment.get("compiler") != self.compiler or environment.get("source_sha") != source_sha:
            return False
        return evaluation.stage is Stage.STATIC or evaluation.judge in (self.version, COMPILE_JUDGE)

    def static(self, candidate: Candidate, study: Study) -> Evaluation | None:
        """The refusal of the static rung; None when the candidate may climb."""
        refusal = self._rooms.check(study.problem, candidate.config, self._device)
        if refusal is None:
            return None
        return replace(refusal, environment={**refusal.environment, **self.environment(candidate)})

    def prior(self, candidate: Candidate, study: Study) -> Evaluation | None:
        """The end of a candidate on the prior rung; None when it may climb."""
        work = candidate.group.op.work(study.problem, candidate.config)
        estimate = self._rooms.prior(work, self._device)
        if can_win(estimate, PRIOR_MARGIN, study.limit_us):
            return None
        return Evaluation(
            stage=Stage.PRIOR,
            status=Status.OK,
            judge=self.version,
            value_us=estimate,
            reason=f"{PRIOR_MARGIN:g} of it are over the {study.limit_us:.4g} us of the best",
            environment=self.environment(candidate),
        )

    def limits(self, candidate: Candidate) -> tuple[float | None, ...]:
        """What it has to get under in each of its studies. A baseline climbs to the end: every ratio stands on it."""
        return tuple(None if candidate.baseline else study.limit_us for study in candidate.studies)

    def request(self, candidate: Candidate) -> Any:
        """What a worker is asked."""
        problems = tuple(study.problem for study in candidate.studies)
        name = candidate.group.op.name
        return self._rooms.compile_request(name, problems, candidate.config, self._device, candidate.limits_us)

    def answer(self, candidate: Candidate, done: Done) -> Iterator[tuple[Study, Evaluation | None]]:
        """One evaluation per study: a failure of the shared compile is the failure of each. None for a study that did
        not ask for the candidate and might still win with it though it was stopped."""
        environment = self.environment(candidate)
        seconds = done.seconds / len(candidate.studies)  # the problems share the cost as they share the code
        if done.status is not Status.OK:
            failed = failure(done.status, done.reason)
            for study in candidate.studies:
                yield study, replace(failed, seconds=seconds, environment=environment)
            return
        result: Compiled = done.value
        environment["templates"] = dict(result.templates)
        for position, study in enumerate(candidate.studies):
            if result.status is Status.OK:
                evaluation = self._predict(candidate, study, result, position)
            else:
                evaluation = failure(result.status, result.reason)
            held = {**evaluation.environment, **environment, "departures": study.departures(candidate.config)}
            if candidate.config == study.field:
                held["baseline"] = True  # what `evaluate.ranking` lets stand in a tie
            open_still = position > 0 and self._might_win(evaluation, candidate.limits_us[position])
            yield study, None if open_still else replace(evaluation, seconds=seconds, environment=held)

    def _might_win(self, evaluation: Evaluation, limit_us: float | None) -> bool:
        """Whether a candidate that was stopped would not have been, had this problem asked for it."""
        if evaluation.stage is not Stage.ANALYTIC or evaluation.value_us is None:
            return False
        return can_win(evaluation.value_us, ANALYTIC_MARGIN, limit_us)

    def _predict(self, candidate: Candidate, study: Study, result: Compiled, position: int) -> Evaluation:
        """What was judged before under another name, the same machine code in the same grids, is not judged again."""
        keys, launches = result.keys[position], result.launches[position]
        facts = [result.facts[key] for key in keys]
        if not candidate.baseline and (reason := spilling(facts)):
            return replace(failure(Status.RESOURCES, reason), judge=self.version)
        try:
            work = candidate.group.op.work(study.problem, candidate.config)
            run = launched.launched(launches, facts, work)
            if (twin := study.twin(run)) is not None and twin != candidate.config:
                known = study.evaluations[twin]
                environment = {launched.LAUNCHES: run, launched.DUPLICATE_OF: twin.sha}
                return replace(known, facts=keys, environment=environment)
            evaluation = self._rooms.predict(launches, facts, work, self._device)
        except Exception as error:  # what one candidate's facts trip over must not end the session
            failed = failure(Status.RUNTIME, f"the predictor raised {type(error).__name__}: {error}")
            return replace(failed, judge=self.version)
        if any(one.extra.get(STOPPED) for one in facts):
            return replace(sound(evaluation), stage=Stage.ANALYTIC, reason="not run: it could not win")
        environment = {**evaluation.environment, launched.LAUNCHES: run}
        return replace(sound(evaluation), facts=keys, environment=environment)


def failure(status: Status, reason: str) -> Evaluation:
    """Of a candidate that was not predicted."""
    return Evaluation(stage=Stage.PREDICTED, status=status, judge=COMPILE_JUDGE, reason=reason)


def sound(evaluation: Evaluation) -> Evaluation:
    """An OK evaluation has a finite value over zero, a failed one has none."""
    value = evaluation.value_us
    if evaluation.ok and (value is None or not math.isfinite(value) or value <= 0):
        evaluation = replace(evaluation, status=Status.IMPLAUSIBLE, reason=f"a prediction of {value} us")
    return evaluation if evaluation.ok else replace(evaluation, value_us=None, low_us=None, high_us=None)
