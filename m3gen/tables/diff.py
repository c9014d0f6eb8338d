"""Two releases of tables: per row what was, what is, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from m3gen.spec import Problem
from m3gen.tables.load import load
from m3gen.tables.table import Point, Table, Values
from m3gen.tables.union import table_paths


@dataclass(frozen=True, slots=True)
class Change:
    """One problem whose row differs; `old` is None for a new row, `new` for one that is gone.

    `settings` are the parameters whose value differs, as (name, old, new); None where one has no meaning.
    """

    problem: Problem
    old: Point | None
    new: Point | None
    settings: tuple[tuple[str, object, object], ...] = ()

    @property
    def ratio(self) -> float | None:
        """Old time over new, over 1 for a gain; None where the two do not compare, being judged otherwise."""
        if self.old is None or self.new is None or self.old.judge != self.new.judge:
            return None
        return self.old.us / self.new.us


@dataclass(frozen=True, slots=True)
class Difference:
    """`same` counts the rows that are equal in every respect."""

    changes: tuple[Change, ...]
    same: int


def compare(old: Path, new: Path) -> Difference:
    """Two tables or two folders of tables, in the order of the problems. `UserError` for what cannot be read."""
    before, after = _rows(old), _rows(new)
    changes, same = [], 0
    for problem in sorted(before.keys() | after.keys()):
        was, now = before.get(problem), after.get(problem)
        if was is not None and now is not None and was[0] == now[0]:
            same += 1
            continue
        settings = tuple(_settings(was[1], now[1])) if was and now else ()
        changes.append(Change(problem, was[0] if was else None, now[0] if now else None, settings))
    return Difference(tuple(changes), same)


def _rows(source: Path) -> dict[Problem, tuple[Point, Values]]:
    tables: Iterable[Table] = [load(path) for path in table_paths(source)]
    return {point.problem: (point, table.configs[point.config]) for table in tables for point in table.points}


def _settings(old: Mapping[str, object], new: Mapping[str, object]) -> Iterable[tuple[str, object, object]]:
    for name in sorted(old.keys() | new.keys()):
        # By text: True and 1 are different values of a parameter.
        if repr(old.get(name)) != repr(new.get(name)):
            yield name, old.get(name), new.get(name)
