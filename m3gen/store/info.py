"""What a database holds, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from m3gen.store.models import Base, EvaluationRow, ProblemRow, SessionRow


@dataclass(frozen=True, slots=True)
class Info:
    """`rows` by table; `evaluations` by (arch, op); `judges` and `compilers` by how many evaluations they made;
    `running`: sessions that have not ended, or were killed. `bytes` is None for a database on a server."""

    schema: str
    bytes: int | None
    rows: Mapping[str, int]
    evaluations: Mapping[tuple[str, str], int]
    judges: Mapping[str, int]
    compilers: Mapping[str, int]
    running: int


def info(session: Session, size: int | None) -> Info:
    """The numbers of one moment. `size` is that of the file."""
    row = EvaluationRow
    of = (ProblemRow.arch, ProblemRow.op)
    by_op = select(*of, func.count()).join(row, row.problem_sha == ProblemRow.sha).group_by(*of).order_by(*of)
    tables = {
        t.name: session.scalar(select(func.count()).select_from(t)) or 0 for t in Base.metadata.sorted_tables
    }
    return Info(
        schema=str(session.scalar(text("SELECT version_num FROM alembic_version"))),
        bytes=size,
        rows=dict(sorted(tables.items())),
        evaluations={(arch, op): number for arch, op, number in session.execute(by_op)},
        judges=_counts(session, row.judge),
        compilers=_counts(session, row.compiler),
        running=session.scalar(select(func.count()).where(SessionRow.ended_at.is_(None))) or 0,
    )


def _counts(session: Session, column: object) -> dict[str, int]:
    query = select(column, func.count()).group_by(column).order_by(column)  # type: ignore[call-overload]
    return {str(name): number for name, number in session.execute(query)}
