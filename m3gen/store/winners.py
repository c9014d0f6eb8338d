"""Which candidate wins each problem: the verified evaluations in one query, the best of them by `ranked`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, and_, case, func, or_, select
from sqlalchemy.orm import Session

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.place import STRONGEST_FIRST
from m3gen.evaluate.ranking import ranked
from m3gen.evaluate.verification import Verification
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store.models import ConfigRow, EvaluationRow, FactsRow, LaunchRow, ProblemRow, VerificationRow
from m3gen.store.records import Winner
from m3gen.store.rows import EVALUATION, evaluation_value, verification_value

_STAGES = (Stage.MEASURED, Stage.PREDICTED)  # those that give a time, the better evidence first
_IDS = 500


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
    return [found[0] for found in verified(session, arch=arch, op=op, most=1)]


def verified(session: Session, *, arch: str | None, op: str | None, most: int | None = None) -> list[list[Winner]]:
    """Of each problem the verified candidates of its best authority, the best first, `most` of them; in the order of
    the problems."""
    contenders, ordered = _ordered(session.execute(_verified(arch=arch, op=op)), most)
    found = _winners(session, {number: contenders[number] for numbers in ordered for number in numbers})
    lists = [[found[number] for number in numbers] for numbers in ordered]
    return sorted(lists, key=lambda winners: winners[0].problem)


def _winners(session: Session, contenders: Mapping[int, _Contender]) -> dict[int, Winner]:
    """All that is known of these evaluations, by id."""
    columns = (ProblemRow.problem, ConfigRow.config, EvaluationRow.compiler, EvaluationRow.created_at)
    joined = (
        select(EvaluationRow.id, *columns, *EVALUATION)
        .join(ProblemRow, ProblemRow.sha == EvaluationRow.problem_sha)
        .join(ConfigRow, ConfigRow.sha == EvaluationRow.config_sha)
    )
    verifications: dict[int, Verification] = {}
    for some in _chunks({one.verification for one in contenders.values()}):
        verdicts = session.scalars(select(VerificationRow).where(VerificationRow.id.in_(some)))
        verifications.update((row.id, verification_value(row)) for row in verdicts)
    found = {}
    for some in _chunks(contenders):
        rows = session.execute(joined.where(EvaluationRow.id.in_(some)))
        for number, problem, config, compiler, created_at, *evaluation in rows:
            found[number] = Winner(
                problem=Problem.from_dict(problem),
                config=Config(config),
                evaluation=evaluation_value(evaluation, contenders[number].keys),
                verification=verifications[contenders[number].verification],
                compiler=compiler,
                created_at=created_at,
            )
    return found


def _chunks(numbers: Iterable[int]) -> Iterator[list[int]]:
    """As many as one query may name: SQLite of before 3.32 takes 999 parameters."""
    ordered = sorted(numbers)
    return (ordered[start : start + _IDS] for start in range(0, len(ordered), _IDS))


@dataclass(frozen=True, slots=True)
class _Contender:
    """What ranking needs of a verified evaluation, and the id of its verification."""

    problem_sha: str
    stage: str
    judge: str
    value_us: float
    verification: int
    baseline: bool | None
    departures: int | None
    keys: list[str] = field(default_factory=list)


def _ordered(
    rows: Iterable[Sequence[Any]], most: int | None
) -> tuple[dict[int, _Contender], list[tuple[int, ...]]]:
    """What `_verified` gives, by id, and the ids of each problem, the best first, `most` of them.

    Measured before predicted, then the newest judge: of these, as `ranked` says.
    """
    contenders: dict[int, _Contender] = {}
    registers: dict[str, int] = {}
    for number, *columns, key, key_registers in rows:
        one = contenders.get(number) or contenders.setdefault(number, _Contender(*columns))
        if key is not None:
            one.keys.append(key)
            registers[key] = key_registers
    first_seen: dict[str, int] = {}
    for number in sorted(contenders):
        first_seen.setdefault(contenders[number].judge, number)
    judges = judge_ranks(first_seen)
    problems: dict[str, dict[tuple[int, int], list[int]]] = {}
    for number, one in contenders.items():
        authority = _STAGES.index(one.stage), judges[one.judge]
        problems.setdefault(one.problem_sha, {}).setdefault(authority, []).append(number)
    found = []
    for by_authority in problems.values():
        rivals = {number: _evaluation(contenders[number]) for number in by_authority[min(by_authority)]}
        found.append(tuple(islice(ranked(rivals, registers.get), most)))
    return contenders, found


def _evaluation(one: _Contender) -> Evaluation:
    """As much of it as ranking looks at."""
    facts = tuple(one.keys)
    return Evaluation(
        stage=Stage(one.stage),
        status=Status.OK,
        judge=one.judge,
        value_us=one.value_us,
        facts=facts,
        environment={"baseline": bool(one.baseline), "departures": one.departures or 0},
    )


def _verified(*, arch: str | None, op: str | None) -> Select[Any]:
    """Rows of the fields of `_Contender` after the evaluation's id, then key and registers of one of its launches.

    Ordered by config, so that equals come in an order that does not tell which was tried first.
    """
    verdicts = _verdicts()
    row = EvaluationRow
    verified = and_(
        verdicts.c.signature == ProblemRow.signature,
        verdicts.c.config_sha == row.config_sha,
        # An evaluation that does not name its source is taken to be of the newest that was verified.
        or_(
            verdicts.c.source_sha == row.source_sha,
            and_(row.source_sha == "", verdicts.c.source_age == 1),
        ),
        verdicts.c.status == Status.OK.value,
    )
    baseline = row.environment["baseline"].as_boolean()
    departures = row.environment["departures"].as_integer()
    columns = (row.id, row.problem_sha, row.stage, row.judge, row.value_us, verdicts.c.id, baseline, departures)
    query = (
        select(*columns, FactsRow.key, FactsRow.facts["registers"].as_integer())
        .join(ProblemRow, ProblemRow.sha == row.problem_sha)
        .join(verdicts, verified)
        .outerjoin(LaunchRow, LaunchRow.evaluation_id == row.id)
        .outerjoin(FactsRow, FactsRow.key == LaunchRow.facts_key)
        .where(row.status == Status.OK.value, row.stage.in_([stage.value for stage in _STAGES]), row.value_us > 0)
        .order_by(row.config_sha, row.id, LaunchRow.position)
    )
    if arch is not None:
        query = query.where(ProblemRow.arch == arch)
    if op is not None:
        query = query.where(ProblemRow.op == op)
    return query


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
