"""`Here`: what rows are held against: the compiler of this process, and what is known of them under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from m3gen.tables.load import Point
from m3gen.tables.validated import Verdict, verdict_key


@dataclass(frozen=True, slots=True)
class Here:
    """`compiler` is a fingerprint; `verdicts` are those of `m3gen tables validate`, by `verdict_key`."""

    compiler: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    def doubt(self, point: Point, source: str | None) -> str:
        """Why a row may no longer hold, "" when it does: its time is that of another compiler, or what was checked
        is another text than the module's, whose SHA-256 is `source` (None where that is not known)."""
        if source is not None and source != point.source_sha:
            return "stale: it was checked as an earlier text of its template"
        if point.compiler != self.compiler:
            return f"of another compiler ({point.compiler or 'unknown'})"
        return ""

    def verdict(self, point: Point, source: str | None) -> Verdict | None:
        """What compiling it here has shown; None when nobody has tried."""
        key = verdict_key(point.problem, point.config, source or point.source_sha, self.compiler)
        return self.verdicts.get(key)
