"""Tables into tables: which rows come in, which stay, and which contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from m3gen import ops
from m3gen.errors import UserError
from m3gen.spec import Problem
from m3gen.tables import merge
from m3gen.tables.assemble import Parts, assemble
from m3gen.tables.files import replace_text, writing
from m3gen.tables.load import load
from m3gen.tables.manifest import write_manifest
from m3gen.tables.table import Point, Table
from m3gen.tables.text import dumps


class Prefer(StrEnum):
    """What becomes of two rows that contradict each other."""

    NEITHER = "neither"  # nothing is merged
    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two rows of one problem between which no rule decides."""

    problem: Problem
    old: Point
    new: Point
    reason: str


@dataclass(frozen=True, slots=True)
class Union:
    """`added` and `displaced` count rows that came in, `kept` those of the newcomer that did not."""

    table: Table
    added: int
    displaced: int
    kept: int
    conflicts: tuple[Conflict, ...]


def union(old: Table, new: Table, prefer: Prefer = Prefer.NEITHER) -> Union:
    """Two tables of one op and arch as one: measured before predicted, a newer version of a judge before an older,
    the faster of two that are judged alike."""
    if (old.arch, old.op) != (new.arch, new.op):
        raise ValueError(f"{old.op} on {old.arch} and {new.op} on {new.arch} are no one table")
    op, parts = ops.get(old.op), Parts()
    parts.add(old)
    parts.add(new)
    parts.points = {point.problem: point for point in old.points}
    added = displaced = kept = 0
    conflicts = []
    for point in new.points:
        held = parts.points.get(point.problem)
        if held is None:
            added += 1
        elif reason := merge.conflict(point, held):
            conflicts.append(Conflict(point.problem, held, point, reason))
            if prefer is not Prefer.NEW:
                kept += 1
                continue
            displaced += 1
        elif point == held or not merge.better(point, held):
            kept += 1
            continue
        else:
            displaced += 1
        parts.points[point.problem] = point
    newer = new if new.provenance.date > old.provenance.date else old
    made = assemble(op, old.arch, parts, templates=newer.provenance.templates, date=newer.provenance.date)
    return Union(made, added, displaced, kept, tuple(conflicts))


def merge_folders(into: Path, sources: Sequence[Path], prefer: Prefer) -> dict[Path, list[Union]]:
    """Every table of `sources` into the folder `into`, by the path of the table it went to.

    Nothing is written when two rows contradict each other and `prefer` says neither. `UserError` for a table that
    cannot be read or written.
    """
    with writing(into):
        made: dict[Path, Table] = {}
        unions: dict[Path, list[Union]] = {}
        for table in _tables(sources):
            path = into / table.arch / f"{table.op}.json"
            held = made.get(path) or (load(path) if path.exists() else None)
            found = Union(table, len(table.points), 0, 0, ()) if held is None else union(held, table, prefer)
            made[path] = found.table
            unions.setdefault(path, []).append(found)
        conflicting = any(one.conflicts for found in unions.values() for one in found)
        if made and not (conflicting and prefer is Prefer.NEITHER):
            for path, table in made.items():
                replace_text(path, dumps(table))
            write_manifest(into)
    return unions


def _tables(sources: Iterable[Path]) -> Iterable[Table]:
    for source in sources:
        yield from (load(path) for path in table_paths(source))


def table_paths(source: Path) -> list[Path]:
    """A table's own path, or those of all tables in a folder; `UserError` when there is none."""
    if source.is_file():
        return [source]
    paths = sorted(source.glob("*/*.json"))
    if not paths:
        raise UserError(f"there is no table at {source}: name a table, or a folder with <arch>/<op>.json")
    return paths
