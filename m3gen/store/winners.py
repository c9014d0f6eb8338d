"""Which candidate wins each problem, as one query over the facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, and_, case, func, or_, select
from sqlalchemy.orm import Session

from m3gen.evaluate.evaluation import Stage
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store.models import ConfigRow, EvaluationRow, LaunchRow, ProblemRow, VerificationRow
from m3gen.store.records import Winner
from m3gen.store.rows import EVALUATION, by_evaluation, evaluation_value, verification_value

STRONGEST_FIRST = ("gpu", "machine-code", "interpreter")
"""What may have run the kernel of a verification: its own GPU says more than an emulator, and that more than
Triton's interpreter."""


def strength() -> ColumnElement[int]:
    """0 for the strongest; what is not known by name comes last."""
    ranks = {name: rank for rank, name in enumerate(STRONGEST_FIRST)}
    return case(ranks, value=VerificationRow.ran_on, else_=len(ranks))


def judge_ranks(first_seen: Mapping[str, int]) -> dict[str, int]:
    """Judge -> rank, the newest 0: by the number that ends its name, then by when it was first seen."""

    def age(judge: str) -> tuple[int, int]:
        number = re.search(r"\d+$", judge)
        return (int(number.group()) if number else -1, first_seen[judge])

    return {judge: rank for rank, judge in enumerate(sorted(first_seen, key=age, reverse=True))}


def winners(session: Session, *, arch: str | None, op: str | None) -> list[Winner]:
    """The winners of all problems, or of one architecture or op, in the order of the problems."""
    seen = select(EvaluationRow.judge, func.min(EvaluationRow.id)).group_by(EvaluationRow.judge)
    judges = judge_ranks(dict(session.execute(seen).all()))
    if not judges:
        return []
    found = session.execute(_query(judges, arch=arch, op=op)).all()
    launches = (
        select(LaunchRow.evaluation_id, LaunchRow.facts_key)
        .where(LaunchRow.evaluation_id.in_([row[0] for row in found]))
        .order_by(LaunchRow.evaluation_id, LaunchRow.position)
    )
    facts = by_evaluation(session.execute(launches))
    won = [
        Winner(
            problem=Problem.from_dict(problem),
            config=Config(config),
            evaluation=evaluation_value(columns, facts.get(number, ())),
            verification=verification_value(verification),
            compiler=compiler,
            created_at=created_at,
        )
        for number, problem, config, verification, compiler, created_at, *columns in found
    ]
    return sorted(won, key=lambda winner: winner.problem)


def _query(judges: Mapping[str, int], *, arch: str | None, op: str | None) -> Select[Any]:
    """Rows of (evaluation id, problem, config, verification, compiler, time, *EVALUATION), one a problem.

    Of the OK evaluations whose verdict is OK: measured before predicted, then the newest judge, then the
    least time; `judges` is what `judge_ranks` says and not empty.
    """
    verdicts = _verdicts()
    evaluation = EvaluationRow
    stages = {Stage.MEASURED.value: 0, Stage.PREDICTED.value: 1}
    place = func.row_number().over(
        partition_by=evaluation.problem_sha,
        order_by=(
            case(stages, value=evaluation.stage),
            case(dict(judges), value=evaluation.judge),
            evaluation.value_us,
            evaluation.config_sha,
            evaluation.id,
        ),
    )
    verified = and_(
        verdicts.c.signature == ProblemRow.signature,
        verdicts.c.config_sha == evaluation.config_sha,
        # An evaluation that does not name its source is taken to be of the newest that was verified.
        or_(
            verdicts.c.source_sha == evaluation.source_sha,
            and_(evaluation.source_sha == "", verdicts.c.source_age == 1),
        ),
        verdicts.c.status == Status.OK.value,
    )
    placed = (
        select(evaluation.id, verdicts.c.id.label("verification_id"), place.label("place"))
        .join(ProblemRow, ProblemRow.sha == evaluation.problem_sha)
        .join(verdicts, verified)
        .where(
            evaluation.status == Status.OK.value,
            evaluation.stage.in_(stages),
            evaluation.value_us.is_not(None),
        )
    )
    if arch is not None:
        placed = placed.where(ProblemRow.arch == arch)
    if op is not None:
        placed = placed.where(ProblemRow.op == op)
    first = placed.cte("placed")
    return (
        select(
            evaluation.id,
            ProblemRow.problem,
            ConfigRow.config,
            VerificationRow,
            evaluation.compiler,
            evaluation.created_at,
            *EVALUATION,
        )
        .join(first, and_(first.c.id == evaluation.id, first.c.place == 1))
        .join(ProblemRow, ProblemRow.sha == evaluation.problem_sha)
        .join(ConfigRow, ConfigRow.sha == evaluation.config_sha)
        .join(VerificationRow, VerificationRow.id == first.c.verification_id)
    )


def _verdicts() -> CTE:
    """One row per (signature, config, source): its strongest verification; the newest source has age 1."""
    row = VerificationRow
    ranked = select(
        row.id,
        row.signature,
        row.config_sha,
        row.source_sha,
        row.status,
        func.row_number()
        .over(partition_by=(row.signature, row.config_sha, row.source_sha), order_by=(strength(), row.id.desc()))
        .label("place"),
    ).cte("ranked")
    newest = func.row_number().over(
        partition_by=(ranked.c.signature, ranked.c.config_sha), order_by=ranked.c.id.desc()
    )
    return (
        select(
            ranked.c.id,
            ranked.c.signature,
            ranked.c.config_sha,
            ranked.c.source_sha,
            ranked.c.status,
            newest.label("source_age"),
        )
        .where(ranked.c.place == 1)
        .cte("verdicts")
    )
