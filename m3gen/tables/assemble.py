"""Points, with what they refer to, into one table: only what is used, everything in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from m3gen import __version__
from m3gen.ops.base import Op
from m3gen.spec import Problem
from m3gen.tables import merge
from m3gen.tables.table import LaunchCode, Point, Provenance, Table, Values


@dataclass(slots=True)
class Parts:
    """What a table is made of, while it is. `times`: what a fallback is chosen by, beside the points' own."""

    points: dict[Problem, Point] = field(default_factory=dict)
    configs: dict[str, Values] = field(default_factory=dict)
    code: dict[str, LaunchCode] = field(default_factory=dict)
    times: dict[Problem, Mapping[str, float]] = field(default_factory=dict)

    def add(self, table: Table) -> None:
        """What the points of a table may refer to; the points themselves are the caller's choice."""
        self.configs |= table.configs
        self.code |= table.code


def assemble(op: Op, arch: str, parts: Parts, *, templates: Mapping[str, str], date: str) -> Table:
    """The table of these points, which are at least one."""
    ordered = tuple(parts.points[problem] for problem in sorted(parts.points))
    used = {point.config for point in ordered}
    launched = {name for point in ordered for name in point.launches}
    variant_fields = merge.variant_fields(op, parts.points)
    return Table(
        op=op.name,
        arch=arch,
        variant_fields=variant_fields,
        configs={name: parts.configs[name] for name in sorted(used)},
        points=ordered,
        fallback=merge.fallbacks(op, variant_fields, ordered, parts.configs, parts.times),
        provenance=Provenance(
            m3gen=__version__,
            compilers=tuple(sorted({point.compiler for point in ordered})),
            judges=tuple(sorted({point.judge for point in ordered})),
            templates=templates,
            date=date,
        ),
        code={name: parts.code[name] for name in sorted(launched)},
    )
