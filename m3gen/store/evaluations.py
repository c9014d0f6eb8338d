"""Evaluations into rows, many at a time, and back: a statement costs more than the rows in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from m3gen.evaluate.evaluation import Evaluation
from m3gen.space.config import Config
from m3gen.spec import Problem
from m3gen.store import dialect, rows
from m3gen.store.models import ConfigRow, EvaluationRow, FactsRow, LaunchRow, ProblemRow
from m3gen.store.records import Record

Found = tuple[Problem, Config, Evaluation]

_IDENTITY = ("problem_sha", "config_sha", "stage", "judge", "compiler", "source_sha")
_RETURNED = (EvaluationRow.id, *(getattr(EvaluationRow, name) for name in _IDENTITY))
_KEYS = 500  # in one query: SQLite of before 3.32 takes 999 parameters


def insert_problem(session: Session, problem: Problem) -> None:
    dialect.insert_new(session, ProblemRow.sha, rows.problem_columns(problem))


def insert_config(session: Session, config: Config) -> None:
    dialect.insert_new(session, ConfigRow.sha, rows.config_columns(config))


def insert_inputs(session: Session, found: Sequence[Found]) -> None:
    """The problems and configs of what was found, where they are new."""
    # In one order everywhere: on a server, whoever inserts the same waits for the other's transaction.
    problems = sorted(dict.fromkeys(problem for problem, _, _ in found), key=lambda problem: problem.sha)
    configs = sorted(dict.fromkeys(config for _, config, _ in found), key=lambda config: config.sha)
    dialect.insert_all_new(session, (ProblemRow.sha,), [rows.problem_columns(problem) for problem in problems])
    dialect.insert_all_new(session, (ConfigRow.sha,), [rows.config_columns(config) for config in configs])


def insert_evaluations(
    session: Session, session_id: int, found: Sequence[Found], columns: Sequence[dict[str, Any]]
) -> int:
    """The evaluations, whose `columns` are given, with their launches; how many were new.

    `ValueError` if the facts of one were never committed.
    """
    compilers = _compilers(session, {key for _, _, evaluation in found for key in evaluation.facts})
    problem_sha = {problem: problem.sha for problem in dict.fromkeys(problem for problem, _, _ in found)}
    values: dict[tuple[str, ...], dict[str, Any]] = {}
    facts: dict[tuple[str, ...], tuple[str, ...]] = {}
    for (problem, config, evaluation), own in zip(found, columns, strict=True):
        value = own | {
            "session_id": session_id,
            "problem_sha": problem_sha[problem],
            "config_sha": config.sha,
            "compiler": _compiler(evaluation, compilers),
            "source_sha": str(evaluation.environment.get("source_sha", "")),
        }
        same = tuple(str(value[name]) for name in _IDENTITY)
        if same not in values:
            values[same], facts[same] = value, evaluation.facts
    new = dialect.insert_all_new(session, _RETURNED, [values[same] for same in sorted(values)])
    launches = [
        {"evaluation_id": row[0], "position": position, "facts_key": key}
        for row in new
        for position, key in enumerate(facts[tuple(row[1:])])
    ]
    dialect.insert_all_new(session, (LaunchRow.position,), launches)
    return len(new)


def _compilers(session: Session, keys: set[str]) -> dict[str, str]:
    """Fingerprints by key of the facts; `ValueError` when one of them was never committed."""
    ordered = sorted(keys)
    stored: dict[str, str] = {}
    for start in range(0, len(ordered), _KEYS):
        some = FactsRow.key.in_(ordered[start : start + _KEYS])
        query = select(FactsRow.key, FactsRow.compiler).where(some)
        stored.update((key, compiler) for key, compiler in session.execute(query))
    if missing := sorted(keys - stored.keys()):
        raise ValueError(f"the facts {missing[0]} of an evaluation are not in the store: commit them first")
    return stored


def _compiler(evaluation: Evaluation, compilers: dict[str, str]) -> str:
    """Fingerprint of the compiler an evaluation holds for."""
    return compilers[evaluation.facts[0]] if evaluation.facts else str(evaluation.environment.get("compiler", ""))


def read(session: Session, *wanted: ColumnElement[bool]) -> Iterator[tuple[int, str, Record]]:
    """The evaluations that meet all conditions, oldest first, each with its number and the sha of its problem."""
    row = EvaluationRow
    launches = (
        select(LaunchRow.evaluation_id, LaunchRow.facts_key)
        .join(row, row.id == LaunchRow.evaluation_id)
        .where(*wanted)
        .order_by(LaunchRow.evaluation_id, LaunchRow.position)
    )
    query = (
        select(row.id, row.problem_sha, ConfigRow.config, row.created_at, *rows.EVALUATION)
        .join(ConfigRow, ConfigRow.sha == row.config_sha)
        .where(*wanted)
        .order_by(row.id)
    )
    facts = rows.by_evaluation(session.execute(launches))
    for number, problem_sha, config, created_at, *columns in session.execute(query):
        evaluation = rows.evaluation_value(columns, facts.get(number, ()))
        yield number, problem_sha, Record(config=Config(config), evaluation=evaluation, created_at=created_at)
