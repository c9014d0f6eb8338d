"""`Budget`: how much a search may spend, in evaluations per problem, in seconds, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from m3gen.errors import UserError

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh]?)")
_EXPECTED = "expected evaluations (200), a time (90s, 10m, 1h) or both (200,8m)"


@dataclass(frozen=True, slots=True)
class Budget:
    """`evaluations` recorded per problem and wall `seconds` of searching; None leaves a bound out.

    The first one reached ends the search. Both count what earlier runs of the same search have spent.
    """

    evaluations: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> Budget:
        """ "200", "90s", "10m", "1h", or a number and a time: "200,8m"; `UserError` for anything else."""
        found: dict[str, float] = {}
        for part in text.split(","):
            match = _PART.fullmatch(part.strip())
            kind = "seconds" if match and match[2] else "evaluations"
            if match is None or kind in found:
                raise UserError(f"--budget {text!r} is no budget: {_EXPECTED}")
            found[kind] = float(match[1]) * _SECONDS.get(match[2], 1.0)
        if any(value <= 0 for value in found.values()) or found.get("evaluations", 1.0) % 1:
            raise UserError(f"--budget {text!r} is no budget: {_EXPECTED}, each over zero")
        evaluations = found.get("evaluations")
        return cls(None if evaluations is None else int(evaluations), found.get("seconds"))

    def __str__(self) -> str:
        parts = [] if self.evaluations is None else [str(self.evaluations)]
        if self.seconds is not None:
            parts.append(f"{self.seconds:g}s")
        return ",".join(parts) or "unlimited"
