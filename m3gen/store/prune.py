"""Taking out of a database what no winner can come from any more."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from m3gen.store.models import (
    ConfigRow,
    EvaluationRow,
    FactsRow,
    LaunchRow,
    ProblemRow,
    SessionProblemRow,
    TracesRow,
    VerificationRow,
)

_SHA = 64  # characters, with which the name of traces begins: the machine code's
_MOST = 500  # numbers in one statement; databases bound them


@dataclass(frozen=True, slots=True)
class Pruned:
    """Rows that were taken out: evaluations, and what nothing refers to any more."""

    evaluations: int
    facts: int
    traces: int
    configs: int
    problems: int


def superseded(session: Session) -> list[int]:
    """Evaluations of an older version of a judge, on problems that the newest one there has judged."""
    row = EvaluationRow
    groups: dict[tuple[str, str, str], dict[int, list[int]]] = {}
    for number, problem, stage, judge in session.execute(select(row.id, row.problem_sha, row.stage, row.judge)):
        family, version = _version(judge)
        groups.setdefault((problem, stage, family), {}).setdefault(version, []).append(number)
    return [
        number
        for versions in groups.values()
        for version, numbers in versions.items()
        if version != max(versions)
        for number in numbers
    ]


def judged_by(session: Session, judges: Collection[str]) -> list[int]:
    """The evaluations of these judges."""
    return list(session.scalars(select(EvaluationRow.id).where(EvaluationRow.judge.in_(judges))))


def prune(session: Session, evaluations: Collection[int]) -> Pruned:
    """Take out evaluations and what nothing refers to any more; verdicts of the gate and sessions stay."""
    numbers = sorted(evaluations)
    for start in range(0, len(numbers), _MOST):
        some = numbers[start : start + _MOST]
        session.execute(delete(LaunchRow).where(LaunchRow.evaluation_id.in_(some)))
        session.execute(delete(EvaluationRow).where(EvaluationRow.id.in_(some)))
    facts = delete(FactsRow).where(FactsRow.key.not_in(select(LaunchRow.facts_key)))
    traces = delete(TracesRow).where(func.substr(TracesRow.name, 1, _SHA).not_in(select(FactsRow.code_sha)))
    configs = delete(ConfigRow).where(
        ConfigRow.sha.not_in(select(EvaluationRow.config_sha)),
        ConfigRow.sha.not_in(select(VerificationRow.config_sha)),
    )
    problems = delete(ProblemRow).where(
        ProblemRow.sha.not_in(select(EvaluationRow.problem_sha)),
        ProblemRow.sha.not_in(select(SessionProblemRow.problem_sha)),
        ProblemRow.signature.not_in(select(VerificationRow.signature)),
    )
    gone = [int(getattr(session.execute(one), "rowcount", 0)) for one in (facts, traces, configs, problems)]
    return Pruned(len(numbers), *gone)


def _version(judge: str) -> tuple[str, int]:
    number = re.search(r"\d+$", judge)
    return (judge[: number.start()], int(number.group())) if number else (judge, -1)
