"""What the correctness gate found out, case by case, each error against its bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from m3gen import ops
from m3gen.evaluate.verification import CaseResult, Verification
from m3gen.ops.base import Tolerance
from m3gen.report import layout, words
from m3gen.space import Config
from m3gen.spec import Problem, Status

KINDS = ("row_rms", "mean_abs", "max_abs")
BOUNDED = {"row_rms": "row rms", "mean_abs": "mean", "max_abs": "max", "past_rounding": "past rounding"}
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


@dataclass(frozen=True, slots=True)
class Worst:
    """The error of a case that comes nearest to its bound, or goes furthest past it."""

    kind: str  # a name of `BOUNDED`
    error: float
    bound: float

    def __str__(self) -> str:
        return f"{BOUNDED[self.kind]} {self.error:.1e} of {self.bound:.1e}"


def worst(case: CaseResult, tolerance: Tolerance) -> Worst | None:
    """None where there is no bound: outputs that are equal to the reference, or wrong."""
    found = [
        Worst(kind, error, bound)
        for kind in BOUNDED
        if (bound := getattr(tolerance, kind)) is not None and (error := getattr(case, kind)) is not None
    ]
    return max(found, key=lambda one: one.error / one.bound, default=None)


def group(problem: Problem, found: Verification, bounds: Bounds) -> Text:
    """One problem under a heading, a line for each case: "dense_decode  bf16  lengths  ok  row rms 1.7e-03 of
    4.0e-03". The worst of its seeds stands for a case. Lines are whole whatever the terminal's width."""
    lines = [layout.title(heading(problem))]
    cases: dict[str, list[CaseResult]] = {}
    for case in found.cases:
        cases.setdefault(case.name, []).append(case)
    width = max(map(len, cases), default=0)
    for name, seeds in cases.items():
        failed = next((case for case in seeds if case.status is not Status.OK), None)
        ended = _failure(failed.status, failed.reason) if failed else f"ok  {_worst_of(seeds, bounds)}"
        line = f"{problem.op}  {words.dtypes(problem)}  {name:{width}}  {ended}"
        lines.append(Text(line, style="red" if failed else ""))
    if not found.ok and all(case.status is Status.OK for case in found.cases):
        line = f"{problem.op}  {words.dtypes(problem)}  {_failure(found.status, found.reason)}"
        lines.append(Text(line, style="red"))
    return Text("\n").join([*lines, Text("")])


def heading(problem: Problem) -> str:
    """ "dense_decode on gfx942, TP 4, KV bf16, query length 1, 1 row, context 8,192"."""
    return (
        f"{problem.op} on {problem.arch}, TP {words.shard(problem)}, KV {words.dtypes(problem)}, query length "
        f"{problem.query_len}, {words.count(problem.rows, 'row')}, context {words.context(problem)}"
    )


def tally(found: Sequence[tuple[Problem, Verification]], seconds: float) -> Text:
    """ "10 ops, 170 problems, 1,512 cases, all passed; gate: interpreter; 14 min 02 s"."""
    counted = tally_object(found, seconds)
    failed = counted["failed"]
    parts = [words.count(counted[what], what.removesuffix("s")) for what in ("ops", "problems", "cases")]
    parts.append(f"{words.count(failed, 'problem')} FAILED" if failed else "all passed")
    text = f"{', '.join(parts)}; gate: {counted['gate']}; {words.duration(seconds)}"
    return Text(text, style="red" if failed else "green")


def tally_object(found: Sequence[tuple[Problem, Verification]], seconds: float) -> dict[str, Any]:
    """`tally` as plain data: "problems" and "failed" count problems, "cases" cases under each seed."""
    return {
        "ops": len({problem.op for problem, _ in found}),
        "problems": len(found),
        "cases": sum(len(verdict.cases) for _, verdict in found),
        "failed": sum(not verdict.ok for _, verdict in found),
        "gate": ", ".join(sorted({verdict.on for _, verdict in found})),
        "seconds": seconds,
    }


def bounds_of(problem: Problem) -> Bounds:
    return partial(ops.get(problem.op).tolerance, problem)


def verification_object(problem: Problem, config: Config, found: Verification) -> dict[str, Any]:
    """A verification as plain data."""
    return {
        "problem": problem.to_dict(),
        "config": config.to_dict(),
        "status": str(found.status),
        "reason": found.reason,
        "gate": found.on,
        "seconds": found.seconds,
        "cases": [case_object(case, bounds_of(problem)) for case in found.cases],
    }


def case_object(case: CaseResult, bounds: Bounds) -> dict[str, Any]:
    """A case as plain data, with its bounds (null where there is none) and the error nearest to its own (null
    where the outputs must be equal to the reference)."""
    tolerance = bounds(case.grid)
    errors = {kind: getattr(case, kind) for kind in BOUNDED}
    limits = {kind: getattr(tolerance, kind) for kind in BOUNDED}
    nearest = worst(case, tolerance)
    return {
        "name": case.name,
        "grid": case.grid,
        "status": str(case.status),
        "reason": case.reason,
        **errors,
        "bounds": limits,
        "worst": None if nearest is None else asdict(nearest),
    }


def _worst_of(seeds: Sequence[CaseResult], bounds: Bounds) -> str:
    found = [one for case in seeds if (one := worst(case, bounds(case.grid))) is not None]
    return str(max(found, key=lambda one: one.error / one.bound)) if found else "exact"


def _failure(status: Status, reason: str) -> str:
    return f"FAILED  {words.STATUSES[status]}{f': {reason}' if reason else ''}"


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
