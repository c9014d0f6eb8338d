"""What the commands on tables have to say: remarks, changes, checks, other people's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from m3gen.report import layout
from m3gen.report.words import context, count, microseconds, problem_line, ratio
from m3gen.spec import Problem
from m3gen.tables.validated import Kept

if TYPE_CHECKING:
    from m3gen.tables.check import RowCheck
    from m3gen.tables.diff import Change, Difference
    from m3gen.tables.foreign import ForeignRow
    from m3gen.tables.lint import Remark
    from m3gen.tables.table import Point
    from m3gen.tables.union import Union


def row_line(problem: Problem) -> str:
    """A problem with its arch and context: "gfx942 sparse_decode TP 4 bf16 rows 16, context 2,048 and up"."""
    return f"{problem.arch} {problem_line(problem)}, context {context(problem)}"


# Lint


def remarks(found: Sequence[Remark]) -> Iterator[str]:
    """A line each, then how many there are of each gravity."""
    for one in found:
        yield f"{one.gravity:<5}  {one.place}: {one.words} [{one.code}]"
    counts = Counter(one.gravity.value for one in found)
    yield ", ".join(f"{name} {number}" for name, number in sorted(counts.items())) or "nothing to remark"


def remark_object(one: Remark) -> dict[str, Any]:
    return {"gravity": str(one.gravity), "code": one.code, "place": one.place, "words": one.words}


# Diff


def difference(found: Difference) -> Iterator[str]:
    """Per row old, new, ratio and evidence; then how many are the same."""
    for change in found.changes:
        yield from _change(change)
    yield f"{count(len(found.changes), 'row')} differ, {found.same:,} are the same"


def change_object(one: Change) -> dict[str, Any]:
    return {
        "problem": one.problem.to_dict(),
        "old": one.old and _point_object(one.old),
        "new": one.new and _point_object(one.new),
        "ratio": one.ratio,
        "settings": {name: [old, new] for name, old, new in one.settings},
    }


def _change(change: Change) -> Iterator[str]:
    line = row_line(change.problem)
    if change.old is None and change.new is not None:
        yield f"+ {line}: {_time(change.new)}"
    elif change.new is None and change.old is not None:
        yield f"- {line}: {_time(change.old)}"
    elif change.old is not None and change.new is not None:
        gain = "not comparable" if change.ratio is None else ratio(change.ratio)
        yield f"~ {line}: {_time(change.old)} -> {_time(change.new)}, {gain}"
        if change.settings:
            yield "    " + ", ".join(f"{name} {old} -> {new}" for name, old, new in change.settings)
        for name in ("compiler", "gate"):
            old, new = getattr(change.old, name), getattr(change.new, name)
            if old != new:
                yield f"    {name} {old} -> {new}"
        if change.old.source_sha != change.new.source_sha and not change.settings:
            yield "    the same config, another text of its template"


def _time(point: Point) -> str:
    return f"{microseconds(point.us)} us {point.status} by {point.judge}, evidence {point.evidence[:8]}"


def _point_object(point: Point) -> dict[str, Any]:
    names = ("us", "low_us", "high_us", "judge", "gate", "config", "compiler", "source_sha", "evidence")
    return {"status": str(point.status), **{name: getattr(point, name) for name in names}}


# Merge


def merges(found: Mapping[str, Sequence[Union]], *, written: bool) -> Iterator[str]:
    """A line a table, and a line a conflict."""
    for name, unions in found.items():
        added, displaced = sum(one.added for one in unions), sum(one.displaced for one in unions)
        kept = sum(one.kept for one in unions)
        yield f"{name}: {added} added, {displaced} displaced, {kept} not taken"
        for union in unions:
            for one in union.conflicts:
                yield f"  conflict on {row_line(one.problem)}: {one.reason}"
    if not written:
        yield "nothing was written: --prefer old or --prefer new decides every conflict"


# Check


def checks(found: Sequence[RowCheck], compiler: str, *, every: bool) -> Iterator[str]:
    """A line for each row that changed, or for every row, and a line for each table."""
    by_table: dict[str, list[RowCheck]] = {}
    for one in found:
        by_table.setdefault(f"{one.arch}/{one.op}.json", []).append(one)
    for name, rows in by_table.items():
        before = sorted({one.point.compiler for one in rows if one.point.compiler != compiler})
        yield f"{name}: {checked(rows)}" + (f"; of {', '.join(before)}, here {compiler}" if before else "")
        for one in rows:
            if every or one.kept is not Kept.SAME or one.stale:
                yield f"  {_check(one)}"


def checked(rows: Iterable[RowCheck]) -> str:
    """ "16 rows: 12 same, 3 changed, 1 fails"."""
    rows = list(rows)
    counts = Counter(one.kept for one in rows)
    told = ", ".join(f"{counts[kept]} {kept}" for kept in Kept if counts[kept])
    other = sum(one.other_code is True for one in rows if one.kept is Kept.SAME)
    return f"{count(len(rows), 'row')}: {told}" + (f" ({other} of the same by other code)" if other else "")


def check_object(one: RowCheck) -> dict[str, Any]:
    return {
        "problem": one.point.problem.to_dict(),
        "config": one.point.config,
        "kept": str(one.kept),
        "why": one.why,
        "stale": one.stale,
        "other_code": one.other_code,
        "compiler": one.point.compiler,
    }


def _check(one: RowCheck) -> str:
    why = [part for part in (one.why, "stale: its template makes another text now" if one.stale else "") if part]
    if not why and one.other_code:
        why = ["other code, the same resources"]
    line = f"{one.kept:<7}  {problem_line(one.point.problem)}, config {one.point.config}"
    return f"{line}: {'; '.join(why)}" if why else line


# Import


def foreign(rows: Sequence[ForeignRow], most: int = 40) -> Table:
    """The first rows: whose they are, what they are for, what they set, and their time."""
    shown = [
        (row.format, row.kernel, _settings(row.shape), _settings(row.config), microseconds(row.us))
        for row in rows[:most]
    ]
    return layout.table(("kind", "kernel", "shape", "config", ">us"), shown, fold=("kernel", "shape", "config"))


def foreign_object(row: ForeignRow) -> dict[str, Any]:
    shape, config = dict(row.shape), dict(row.config)
    return {"kind": row.format, "kernel": row.kernel, "shape": shape, "config": config, "us": row.us}


def _settings(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
