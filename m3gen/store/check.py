"""Is what the store holds what m3gen wrote: identities that match their rows, values that can be read."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.evaluation import Stage
from m3gen.evaluate.trace import Traces
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store.identity import signature
from m3gen.store.models import (
    ConfigRow,
    EvaluationRow,
    FactsRow,
    LaunchRow,
    ProblemRow,
    TracesRow,
    VerificationRow,
)
from m3gen.store.rows import verification_value

_BATCH = 500
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


def logical_faults(session: Session) -> Iterator[str]:
    """One line per row that contradicts itself."""
    yield from _problems(session)
    yield from _configs(session)
    yield from _facts(session)
    yield from _traces(session)
    yield from _evaluations(session)
    yield from _launches(session)
    yield from _verifications(session)


def _problems(session: Session) -> Iterator[str]:
    for row in session.scalars(select(ProblemRow).execution_options(yield_per=_BATCH)):
        try:
            problem = Problem.from_dict(row.problem)
        except _UNREADABLE as error:
            yield f"problem {row.sha}: {error}"
            continue
        if problem.sha != row.sha:
            yield f"problem {row.sha}: its content has the sha {problem.sha}"
        elif (signature(problem), problem.op, problem.arch) != (row.signature, row.op, row.arch):
            yield f"problem {row.sha}: its signature, op or arch is not that of its content"


def _configs(session: Session) -> Iterator[str]:
    for sha, values in session.execute(select(ConfigRow.sha, ConfigRow.config)):
        try:
            found = Config(values).sha
        except _UNREADABLE as error:
            yield f"config {sha}: {error}"
            continue
        if found != sha:
            yield f"config {sha}: its content has the sha {found}"


def _facts(session: Session) -> Iterator[str]:
    for row in session.scalars(select(FactsRow).execution_options(yield_per=_BATCH)):
        try:
            facts = KernelFacts.from_dict(row.facts)
        except _UNREADABLE as error:
            yield f"kernel facts {row.key}: {error}"
            continue
        if (facts.kernel, facts.arch, facts.compiler, facts.code_sha) != (
            row.kernel,
            row.arch,
            row.compiler,
            row.code_sha,
        ):
            yield f"kernel facts {row.key}: its kernel, arch, compiler or code is not that of its content"


def _traces(session: Session) -> Iterator[str]:
    for name, traces in session.execute(
        select(TracesRow.name, TracesRow.traces).execution_options(yield_per=_BATCH)
    ):
        try:
            Traces.from_bytes(traces)
        except ValueError as error:
            yield f"traces {name}: {error}"


def _evaluations(session: Session) -> Iterator[str]:
    row = EvaluationRow
    columns = select(row.id, row.stage, row.status, row.value_us, row.low_us, row.high_us)
    for number, stage, status, value, low, high in session.execute(columns.execution_options(yield_per=_BATCH)):
        if stage not in list(Stage):
            yield f"evaluation {number}: no stage is called {stage!r}"
        if status not in list(Status):
            yield f"evaluation {number}: no status is called {status!r}"
        if status == Status.OK and (value is None or value <= 0):
            yield f"evaluation {number}: it is ok and has no value over zero"
        if low is not None and high is not None and low > high:
            yield f"evaluation {number}: its interval {low} .. {high} is upside down"


def _launches(session: Session) -> Iterator[str]:
    row = LaunchRow
    per_evaluation = (
        select(row.evaluation_id)
        .group_by(row.evaluation_id)
        .having((func.min(row.position) != 0) | (func.max(row.position) != func.count() - 1))
    )
    for number in session.scalars(per_evaluation):
        yield f"evaluation {number}: a launch is missing"


def _verifications(session: Session) -> Iterator[str]:
    known = set(session.scalars(select(ProblemRow.signature)))
    for row in session.scalars(select(VerificationRow).execution_options(yield_per=_BATCH)):
        if row.signature not in known:
            yield f"verification {row.id}: no problem has the signature {row.signature}"
        try:
            verification_value(row)
        except _UNREADABLE as error:
            yield f"verification {row.id}: {error}"
