"""Why rows are not clear, by hand: what was tried on a kernel, and what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import Row


@dataclass(frozen=True, slots=True)
class Reason:
    """What is to be said of the rows that it names; what it leaves out it holds for all of."""

    text: str
    op: str
    device: str = ""
    cache: str = ""
    rows: tuple[int, ...] = ()
    context: int = 0

    def holds(self, row: Row) -> bool:
        return (
            self.op == row.op
            and self.device in ("", row.device)
            and self.cache in ("", row.cache)
            and (not self.rows or row.rows in self.rows)
            and self.context in (0, row.context)
        )


REASONS: tuple[Reason, ...] = ()
"""The first that holds counts."""
