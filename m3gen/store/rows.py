"""Values to columns and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.verification import CaseResult, Verification
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store.identity import signature
from m3gen.store.models import EvaluationRow, VerificationRow


def now() -> str:
    """UTC, ISO 8601, always with microseconds: sorts as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def problem_columns(problem: Problem) -> dict[str, Any]:
    return {
        "sha": problem.sha,
        "signature": signature(problem),
        "op": problem.op,
        "arch": problem.arch,
        "problem": problem.to_dict(),
        "created_at": now(),
    }


def config_columns(config: Config) -> dict[str, Any]:
    return {"sha": config.sha, "config": config.to_dict()}


def facts_columns(key: str, facts: KernelFacts) -> dict[str, Any]:
    return {
        "key": key,
        "kernel": facts.kernel,
        "arch": facts.arch,
        "compiler": facts.compiler,
        "code_sha": facts.code_sha,
        "facts": facts.to_dict(),
        "created_at": now(),
    }


def traces_columns(name: str, traces: bytes) -> dict[str, Any]:
    return {"name": name, "traces": traces, "created_at": now()}


def evaluation_columns(evaluation: Evaluation) -> dict[str, Any]:
    """All but what it belongs to. `ValueError` for OK without a value over zero, and for a time that is not
    finite."""
    if evaluation.ok and (evaluation.value_us is None or evaluation.value_us <= 0):
        raise ValueError(f"an OK evaluation by {evaluation.judge} with value_us={evaluation.value_us}")
    for name in ("value_us", "low_us", "high_us", "seconds"):
        value = getattr(evaluation, name)
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{name}={value!r} of an evaluation: expected a finite number")
    return {
        "stage": evaluation.stage.value,
        "judge": evaluation.judge,
        "status": evaluation.status.value,
        "value_us": evaluation.value_us,
        "low_us": evaluation.low_us,
        "high_us": evaluation.high_us,
        "terms": dict(evaluation.terms),
        "limited_by": evaluation.limit,
        "code": evaluation.code,
        "reason": printable(evaluation.reason),
        "samples_us": list(evaluation.samples_us),
        "seconds": evaluation.seconds,
        "environment": dict(evaluation.environment),
        "created_at": now(),
    }


EVALUATION = (
    EvaluationRow.stage,
    EvaluationRow.status,
    EvaluationRow.judge,
    EvaluationRow.value_us,
    EvaluationRow.low_us,
    EvaluationRow.high_us,
    EvaluationRow.terms,
    EvaluationRow.limited_by,
    EvaluationRow.code,
    EvaluationRow.reason,
    EvaluationRow.samples_us,
    EvaluationRow.seconds,
    EvaluationRow.environment,
)
"""The columns that `evaluation_value` takes, in its order."""


def evaluation_value(columns: Sequence[Any], facts: Sequence[str]) -> Evaluation:
    stage, status, judge, value, low, high, terms, limit, code, reason, samples, seconds, environment = columns
    return Evaluation(
        stage=Stage(stage),
        status=Status(status),
        judge=judge,
        value_us=value,
        low_us=low,
        high_us=high,
        terms=terms,
        limit=limit,
        code=code,
        reason=reason,
        samples_us=tuple(samples),
        seconds=seconds,
        facts=tuple(facts),
        environment=environment,
    )


def by_evaluation(launches: Iterable[Sequence[Any]]) -> dict[int, list[str]]:
    """Evaluation id -> keys of its facts, from (id, key) in launch order."""
    keys: dict[int, list[str]] = {}
    for number, key in launches:
        keys.setdefault(number, []).append(key)
    return keys


def verification_columns(verification: Verification) -> dict[str, Any]:
    """All but what it holds for. The errors of a case may be NaN or infinite: that is how kernels fail."""
    return {
        "source_sha": verification.source_sha,
        "ran_on": verification.on,
        "status": verification.status.value,
        "cases": [asdict(case) | {"reason": printable(case.reason)} for case in verification.cases],
        "seconds": verification.seconds,
        "reason": printable(verification.reason),
        "environment": dict(verification.environment),
        "created_at": now(),
    }


def verification_value(row: VerificationRow) -> Verification:
    return Verification(
        status=Status(row.status),
        on=row.ran_on,
        source_sha=row.source_sha,
        cases=tuple(_case(case) for case in row.cases),
        seconds=row.seconds,
        reason=row.reason,
        environment=row.environment,
    )


def _case(case: Mapping[str, Any]) -> CaseResult:
    return CaseResult(**{**case, "status": Status(case["status"])})


def printable(text: str) -> str:
    """Text that every database takes: the tail of a dying compiler may hold anything."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
