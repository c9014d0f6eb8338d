"""What `show` and `verify` read from a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.evaluate.evaluation import Evaluation
from m3gen.report.history import FailureLine, SessionLine
from m3gen.search.result import WinnerRow
from m3gen.spec import Status
from m3gen.store import Store, Winner, faults
from m3gen.store.engine import open_engine
from m3gen.store.models import EvaluationRow, ProblemRow, SessionProblemRow, SessionRow, VerificationRow
from m3gen.tables.findings import findings


def winner_row(store: Store, winner: Winner) -> WinnerRow:
    """A stored winner beside the default of its problem, both judged alike."""
    problem, evaluation = winner.problem, winner.evaluation
    value = _value(evaluation)
    [finding] = findings(store, [winner])
    baseline = finding.baseline_us
    facts = [found for key in evaluation.facts if (found := store.facts(key)) is not None]
    widest = max(facts, key=lambda f: f.registers, default=None)
    return WinnerRow(
        problem=problem,
        config=winner.config,
        stage=evaluation.stage,
        judge=evaluation.judge,
        value_us=value,
        low_us=evaluation.low_us,
        high_us=evaluation.high_us,
        baseline_us=baseline,
        ratio=None if baseline is None else baseline / value,
        limit=evaluation.limit,
        registers=finding.registers,
        waves_per_simd=widest.waves_per_simd if widest else 0.0,
        workgroups_per_cu=widest.workgroups_per_cu if widest else 0,
        verification=winner.verification,
        default_config=ops.get(problem.op).default(problem, device_of(problem)),
    )


def winner_of(store: Store, row: WinnerRow) -> Winner:
    """What the store knows of the winner of a session: the evaluation that the row stands on."""
    record = next(
        record
        for record in reversed(store.evaluations(row.problem, stage=row.stage, judge=row.judge))
        if record.config == row.config and record.evaluation.value_us == row.value_us
    )
    facts = store.facts(record.evaluation.facts[0]) if record.evaluation.facts else None
    return Winner(
        problem=row.problem,
        config=row.config,
        evaluation=record.evaluation,
        verification=row.verification,
        compiler=facts.compiler if facts else "",
        created_at=record.created_at,
    )


def sessions(store: Store, *, arch: str | None, op: str | None) -> list[SessionLine]:
    """Every session on problems of `arch` and `op`, oldest first."""
    row = SessionRow
    columns = (row.id, row.state, row.started_at, row.seconds, row.arguments)
    query = (
        select(*columns, func.count(SessionProblemRow.problem_sha))
        .join(SessionProblemRow, SessionProblemRow.session_id == row.id)
        .join(ProblemRow, ProblemRow.sha == SessionProblemRow.problem_sha)
        .where(*_of(arch, op))
        .group_by(row.id)
        .order_by(row.id)
    )
    with _reading(store) as session:
        return [
            SessionLine(
                id=number,
                state=state,
                started_at=started,
                seconds=seconds,
                problems=problems,
                arguments=arguments,
            )
            for number, state, started, seconds, arguments, problems in session.execute(query)
        ]


def failures(store: Store, *, arch: str | None, op: str | None) -> list[FailureLine]:
    """Failed candidates by stage, status and rule, those of the gate too, the most frequent first."""
    evaluation, verification = EvaluationRow, VerificationRow
    kind = (ProblemRow.op, ProblemRow.arch)
    stages = (
        select(
            *kind,
            evaluation.stage,
            evaluation.status,
            evaluation.code,
            func.count(),
            func.min(evaluation.reason),
        )
        .join(ProblemRow, ProblemRow.sha == evaluation.problem_sha)
        .where(evaluation.status != Status.OK.value, *_of(arch, op))
        .group_by(*kind, evaluation.stage, evaluation.status, evaluation.code)
    )
    # Problems share a signature: each verdict counts once.
    signatures = select(*kind, ProblemRow.signature).where(*_of(arch, op)).distinct().subquery()
    verdicts = (
        select(
            signatures.c.op,
            signatures.c.arch,
            verification.status,
            func.count(),
            func.min(verification.reason),
        )
        .join(signatures, signatures.c.signature == verification.signature)
        .where(verification.status != Status.OK.value)
        .group_by(signatures.c.op, signatures.c.arch, verification.status)
    )
    with _reading(store) as session:
        evaluated = session.execute(stages).all()
        judged = session.execute(verdicts).all()
    lines = [
        FailureLine(op=of, arch=on, stage=stage, status=Status(status), code=code, count=count, example=example)
        for of, on, stage, status, code, count, example in (
            *evaluated,
            *((of, on, "gate", status, "", count, example) for of, on, status, count, example in judged),
        )
    ]
    return sorted(lines, key=lambda line: (-line.count, line.arch, line.op, line.stage, line.status, line.code))


def _of(arch: str | None, op: str | None) -> list[ColumnElement[bool]]:
    """The conditions on a problem that these two make."""
    wanted = ((ProblemRow.arch, arch), (ProblemRow.op, op))
    return [column == value for column, value in wanted if value is not None]


@contextmanager
def _reading(store: Store) -> Iterator[Session]:
    engine = open_engine(store.location, read_only=True)
    try:
        with faults.as_user_errors(store.location), Session(engine) as session:
            yield session
    finally:
        engine.dispose()


def _value(evaluation: Evaluation) -> float:
    assert evaluation.value_us is not None  # the store's winners have a value
    return evaluation.value_us
