"""What the correctness gate found out, case by case, each error against its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from m3gen.evaluate.verification import CaseResult, Verification
from m3gen.ops.base import Tolerance
from m3gen.report import layout, words
from m3gen.space import Config
from m3gen.spec import Problem, Status

KINDS = ("row_rms", "mean_abs", "max_abs")
Bounds = Callable[[str], Tolerance]  # the tolerance of a grid of cases


def verdict(problem: Problem, config: Config, found: Verification, bounds: Bounds) -> RenderableType:
    """One verification: the candidate, a table of its cases, and the outcome in a line; fits 80 columns."""
    heading = f"{problem.op} on {problem.arch}, TP {words.shard(problem)}, KV {words.kv(problem)}"
    outcome = Text(outcome_line(found), style="green" if found.ok else "red")
    return Group(layout.title(heading), Text(words.config_line(config)), _cases(found, bounds), outcome, Text(""))


def outcome_line(found: Verification) -> str:
    """ "passed 26 cases on the interpreter in 41 s", or what failed."""
    if found.ok:
        return f"passed {len(found.cases)} cases on the {found.on} in {words.duration(found.seconds)}"
    reason = f": {found.reason}" if found.reason else ""
    return f"FAILED on the {found.on}: {words.STATUSES[found.status]}{reason}"


def case_object(case: CaseResult, bounds: Bounds) -> dict[str, Any]:
    """A case as plain data, with its bounds (null where there is none)."""
    tolerance = bounds(case.grid)
    errors = {kind: getattr(case, kind) for kind in KINDS}
    limits = {kind: getattr(tolerance, kind) for kind in KINDS}
    return {
        "name": case.name,
        "grid": case.grid,
        "status": str(case.status),
        "reason": case.reason,
        **errors,
        "bounds": limits,
    }


def _cases(found: Verification, bounds: Bounds) -> Table:
    cells: list[tuple[str | Text, ...]] = []
    for case in found.cases:
        tolerance = bounds(case.grid)
        errors = (_against(getattr(case, kind), getattr(tolerance, kind)) for kind in KINDS)
        ended = "ok" if case.status is Status.OK else words.STATUSES[case.status]
        cells.append((case.name, *errors, Text(ended, style="" if ended == "ok" else "red")))
    columns = ("case", ">row rms / bound", ">mean / bound", ">max / bound", "")
    return layout.table(columns, cells, fold=("case",))


def _against(error: float, bound: float | None) -> str:
    return f"{error:.1e} / {bound:.1e}" if bound is not None else f"{error:.1e}"
