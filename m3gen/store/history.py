"""What the store remembers beside its winners: the sessions that were run, and what failed in them."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Executable, func, literal, select
from sqlalchemy.orm import Session

from m3gen.spec import Problem, Status
from m3gen.store.models import EvaluationRow, ProblemRow, SessionProblemRow, SessionRow, VerificationRow
from m3gen.store.records import GATE, FailureCount, SessionRecord


def problems(session: Session, *, arch: str | None, op: str | None) -> list[Problem]:
    """All problems that were evaluated, or those of one architecture or op, in their order."""
    query = select(ProblemRow.problem).where(ProblemRow.sha.in_(select(EvaluationRow.problem_sha)), *_of(arch, op))
    return sorted(Problem.from_dict(found) for found in session.scalars(query))


def sessions(session: Session, *, arch: str | None, op: str | None) -> list[SessionRecord]:
    """All sessions, or those on a problem of one architecture or op, oldest first."""
    row = SessionRow
    query = (
        select(
            *(row.id, row.state, row.started_at, row.seconds, row.arguments),
            func.count(SessionProblemRow.problem_sha),
        )
        .outerjoin(SessionProblemRow, SessionProblemRow.session_id == row.id)
        .outerjoin(ProblemRow, ProblemRow.sha == SessionProblemRow.problem_sha)
        .where(*_of(arch, op))
        .group_by(row.id)
        .order_by(row.id)
    )
    return [
        SessionRecord(
            id=number, state=state, started_at=started, seconds=seconds, problems=problems, arguments=arguments
        )
        for number, state, started, seconds, arguments, problems in session.execute(query)
    ]


def failures(session: Session, *, arch: str | None, op: str | None) -> list[FailureCount]:
    """Failed candidates by stage, status and rule, those of the gate too, the most frequent first."""
    found = [
        FailureCount(op=of, arch=on, stage=stage, status=Status(status), code=code, count=count, example=example)
        for query in (_evaluated(arch, op), _judged(arch, op))
        for of, on, stage, status, code, count, example in session.execute(query)
    ]
    return sorted(found, key=lambda one: (-one.count, one.arch, one.op, one.stage, one.status, one.code))


def _evaluated(arch: str | None, op: str | None) -> Executable:
    row = EvaluationRow
    kind = (ProblemRow.op, ProblemRow.arch, row.stage, row.status, row.code)
    return (
        select(*kind, func.count(), func.min(row.reason))
        .join(ProblemRow, ProblemRow.sha == row.problem_sha)
        .where(row.status != Status.OK.value, *_of(arch, op))
        .group_by(*kind)
    )


def _judged(arch: str | None, op: str | None) -> Executable:
    row = VerificationRow
    # The problems of a signature differ in their load alone: each verdict counts once.
    of = select(ProblemRow.op, ProblemRow.arch, ProblemRow.signature).where(*_of(arch, op)).distinct().subquery()
    kind = (of.c.op, of.c.arch, row.status)
    return (
        select(of.c.op, of.c.arch, literal(GATE), row.status, literal(""), func.count(), func.min(row.reason))
        .join(of, of.c.signature == row.signature)
        .where(row.status != Status.OK.value)
        .group_by(*kind)
    )


def _of(arch: str | None, op: str | None) -> list[ColumnElement[bool]]:
    """The conditions on a problem that these two make."""
    wanted = ((ProblemRow.arch, arch), (ProblemRow.op, op))
    return [column == value for column, value in wanted if value is not None]
