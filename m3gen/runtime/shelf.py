"""`Shelf`: one table as the ladder asks it: which row serves this load, and which row comes nearest."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import ModuleType

from m3gen.runtime.modules import Modules
from m3gen.runtime.selection import Rung
from m3gen.spec import Problem
from m3gen.tables.load import EXACT_FIELDS, Fallback, Point, Table

Exact = tuple[int | str, ...]


class NoRow(Exception):
    """No row of a table serves a load; says why."""


class Shelf:
    """A table with its modules. Everything but the load must be equal; the load is rounded up to a row's."""

    def __init__(self, rung: Rung, table: Table, modules: Modules, place: str = "") -> None:
        """`place` is the file of the table, for words."""
        self.rung = rung
        self.table = table
        self.place = place
        self.modules = modules
        self._rows: dict[Exact, dict[int, list[Point]]] = {}
        for point in sorted(table.points, key=lambda p: (p.problem.rows, p.problem.context)):
            by_rows = self._rows.setdefault(_exact(point.problem), {})
            by_rows.setdefault(point.problem.rows, []).append(point)

    def edges(self, problem: Problem) -> tuple[int, ...]:
        """The row counts for which there is a row of this problem, ascending."""
        return tuple(self._rows.get(_exact(problem), ()))

    def point(self, problem: Problem, rows: int, context: int) -> Point:
        """The row of the smallest bucket at or above the load; `NoRow` where there is none."""
        by_rows = self._rows.get(_exact(problem))
        if by_rows is None:
            raise NoRow(self.difference(problem))
        edge = next((edge for edge in by_rows if rows <= edge), None)
        if edge is None:
            raise NoRow(f"{rows} rows are over its last bucket {max(by_rows)}")
        points = by_rows[edge]
        for point in points:
            if context <= point.problem.context:
                return point
        if "context" in points[-1].open_ended:
            return points[-1]
        raise NoRow(f"a context of {context} is over its last bucket {points[-1].problem.context}")

    def fallback(self, problem: Problem) -> Fallback | None:
        """The fallback whose key the problem has."""
        for fallback in self.table.fallback:
            if all(getattr(problem, name) == value for name, value in fallback.key.items()):
                return fallback
        return None

    def kernel(self, problem: Problem, config: str) -> ModuleType:
        """The generated module; `modules.Missing` when there is none."""
        return self.modules.find(self.table.op, self.table.kernel(problem, config))

    def source(self, problem: Problem, config: str) -> str | None:
        """SHA-256 of the text of the generated module; None when its index does not say."""
        return self.modules.source(self.table.op, self.table.kernel(problem, config))

    def difference(self, problem: Problem) -> str:
        """What its nearest row differs in, in words: the one with the fewest such fields, then the nearest in
        rows."""

        def distance(point: Point) -> tuple[int, int]:
            return len(_differing(point.problem, problem)), abs(point.problem.rows - problem.rows)

        nearest = min(self.table.points, key=distance).problem
        words = [
            f"{name} {getattr(nearest, name)}, not {getattr(problem, name)}"
            for name in _differing(nearest, problem)
        ]
        return f"its nearest row has {' and '.join(words)}"


_exact: Callable[[Problem], Exact] = attrgetter(*EXACT_FIELDS)


def _differing(a: Problem, b: Problem) -> tuple[str, ...]:
    return tuple(name for name in EXACT_FIELDS if getattr(a, name) != getattr(b, name))
