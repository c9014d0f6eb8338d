"""The launches of a script, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from m3gen.emulator.profile import Profile
from m3gen.report.layout import table

_COLUMNS = (
    *("kernel", ">grid", ">waves", ">instructions", ">vector", ">matrix", ">scalar", ">LDS", ">memory"),
    *(">read", ">written", ">conflicts", ">seconds"),
)
_VECTOR, _SCALAR = ("valu", "transcendental"), ("salu", "smem", "branch", "wait", "barrier", "other")


def launches(profiles: Sequence[Profile]) -> RenderableType:
    """One row a launch: instructions that waves executed, in all and by unit; bytes of global memory that they asked
    for; passes that LDS bank conflicts cost; wall seconds of executing it here."""
    rows = []
    for profile in profiles:
        units, traffic, counts = profile.by_unit, profile.traffic, profile.counts
        numbers = [
            profile.workgroups * profile.waves,
            sum(units.values()),
            *(sum(units.get(unit, 0) for unit in group) for group in (_VECTOR, ("matrix",), _SCALAR)),
            *(units.get(unit, 0) for unit in ("lds", "vmem")),
            traffic["global_read"] + traffic["scalar_read"],
            traffic["global_written"],
            int(counts.conflicts.sum()),
        ]
        grid = ",".join(map(str, profile.grid))
        rows.append([profile.kernel, grid, *(f"{number:,}" for number in numbers), f"{profile.seconds:.2f}"])
    return table(_COLUMNS, rows)
