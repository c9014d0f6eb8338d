"""One database into another, by content: what is known there is known here, and nothing is counted twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, Session

from m3gen.store import dialect
from m3gen.store.models import (
    ConfigRow,
    EvaluationRow,
    FactsRow,
    LaunchRow,
    ProblemRow,
    SessionProblemRow,
    SessionRow,
    TracesRow,
    VerificationRow,
)

_BATCH = 500
_FOUND = ("status", "value_us")  # what an evaluation says


@dataclass(slots=True)
class Merged:
    """Rows by table: those that came in, and those that were there. `differing` are evaluations and verdicts of one
    identity with another result, in words; the one that was there stays."""

    new: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)

    def count(self, table: str, *, is_new: bool) -> None:
        counts = self.new if is_new else self.known
        counts[table] = counts.get(table, 0) + 1


def merge(source: Session, target: Session) -> Merged:
    """Every row of `source` into `target`, whose transaction the caller commits: all of it or nothing."""
    merged = Merged()
    content: tuple[tuple[type[DeclarativeBase], InstrumentedAttribute[Any]], ...] = (
        (ProblemRow, ProblemRow.sha),
        (ConfigRow, ConfigRow.sha),
        (FactsRow, FactsRow.key),
        (TracesRow, TracesRow.name),
    )
    for model, key in content:
        for row in _rows(source, model):
            merged.count(model.__tablename__, is_new=dialect.insert_new(target, key, row) is not None)
    sessions = _sessions(source, target, merged)
    _evaluations(source, target, sessions, merged)
    _verifications(source, target, merged)
    return merged


def _sessions(source: Session, target: Session, merged: Merged) -> dict[int, int]:
    """Session ids there to ids here. One session is known by what it was asked and when it began."""
    ids = {}
    for row in _rows(source, SessionRow):
        number = row.pop("id")
        same = (SessionRow.arguments_sha == row["arguments_sha"], SessionRow.started_at == row["started_at"])
        held = target.scalar(select(SessionRow.id).where(*same))
        merged.count("sessions", is_new=held is None)
        ids[number] = int(dialect.insert_new(target, SessionRow.id, row) or 0) if held is None else held
    for row in _rows(source, SessionProblemRow):
        row["session_id"] = ids[row["session_id"]]
        dialect.insert_new(target, SessionProblemRow.session_id, row)
    return ids


def _evaluations(source: Session, target: Session, sessions: Mapping[int, int], merged: Merged) -> None:
    launches: dict[int, list[dict[str, Any]]] = {}
    for launch in _rows(source, LaunchRow):
        launches.setdefault(launch["evaluation_id"], []).append(launch)
    identity = ("problem_sha", "config_sha", "stage", "judge", "compiler", "source_sha")
    for row in _rows(source, EvaluationRow):
        number = row.pop("id")
        row["session_id"] = sessions[row["session_id"]]
        made = dialect.insert_new(target, EvaluationRow.id, row)
        merged.count("evaluations", is_new=made is not None)
        if made is None:
            columns = [getattr(EvaluationRow, name) for name in _FOUND]
            same = [getattr(EvaluationRow, name) == row[name] for name in identity]
            held = target.execute(select(*columns).where(*same)).one()
            if tuple(held) != tuple(row[name] for name in _FOUND):
                of = f"problem {row['problem_sha'][:12]}, config {row['config_sha'][:12]} by {row['judge']}"
                theirs = f"{row['status']} {row['value_us']}"
                merged.differing.append(f"evaluation of {of}: {held[0]} {held[1]} here, {theirs} there")
            continue
        for launch in launches.get(number, ()):
            dialect.insert_new(target, LaunchRow.position, {**launch, "evaluation_id": made})


def _verifications(source: Session, target: Session, merged: Merged) -> None:
    for row in _rows(source, VerificationRow):
        del row["id"]
        made = dialect.insert_new(target, VerificationRow.id, row)
        merged.count("verifications", is_new=made is not None)
        if made is None:
            identity = ("signature", "config_sha", "source_sha", "ran_on")
            same = [getattr(VerificationRow, name) == row[name] for name in identity]
            held = target.execute(select(VerificationRow.status).where(*same)).scalar_one()
            if held != row["status"]:
                of = f"config {row['config_sha'][:12]} on {row['ran_on']}"
                merged.differing.append(f"verdict on {of}: {held} here, {row['status']} there")


def _rows(session: Session, model: type[DeclarativeBase]) -> Iterator[dict[str, Any]]:
    """Every row, by the names of the columns, in the order of the primary key."""
    table = model.__table__
    query = select(table).order_by(*table.primary_key).execution_options(yield_per=_BATCH)
    for row in session.execute(query):
        yield dict(row._mapping)
