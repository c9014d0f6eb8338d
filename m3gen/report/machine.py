"""The same for machines: plain JSON objects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from m3gen.evaluate.verification import Verification
from m3gen.report import words
from m3gen.search.progress import Incumbent
from m3gen.search.result import WinnerRow
from m3gen.spec import Problem


def winner(row: WinnerRow) -> dict[str, Any]:
    """One row of `winners`. Times in microseconds; `ratio` is baseline over value."""
    return {
        "problem": row.problem.to_dict(),
        "tp": words.tensor_parallel(row.problem),
        "config": row.config.to_dict(),
        "field_config": row.field_config.to_dict(),
        "value_us": row.value_us,
        "low_us": row.low_us,
        "high_us": row.high_us,
        "baseline_us": row.baseline_us,
        "ratio": row.ratio,
        "stage": str(row.stage),
        "judge": row.judge,
        "limit": row.limit,
        "registers": row.registers,
        "waves_per_simd": row.waves_per_simd,
        "workgroups_per_cu": row.workgroups_per_cu,
        "gate": row.verification.on,
        "errors": worst_errors(row.verification),
    }


def standing(problem: Problem, best: Incumbent | None) -> dict[str, Any]:
    """One row of `without_winner`: a problem and its best candidate, verified or not, if there is one."""
    return {
        "problem": problem.to_dict(),
        "tp": words.tensor_parallel(problem),
        "config": best.config.to_dict() if best else None,
        "value_us": best.value_us if best else None,
        "baseline_us": best.baseline_us if best else None,
        "stage": str(best.stage) if best else None,
    }


def worst_errors(verification: Verification) -> dict[str, Any]:
    """The largest error of each kind over all cases, and how many cases there were."""
    cases = verification.cases
    kinds = ("row_rms", "mean_abs", "max_abs")
    worst = {kind: max((getattr(case, kind) for case in cases), default=None) for kind in kinds}
    return {"cases": len(cases), **worst}


def dumps(value: Mapping[str, Any]) -> str:
    """Strict JSON: what no JSON number can say (NaN, infinity) is null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
