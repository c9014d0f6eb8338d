"""`Dispatch`: one op on one shape, every choice made; a call is a list index and the launcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from m3gen.runtime.selection import Selection


class Dispatch:
    """`dispatch(rows, **arguments)` runs the kernel chosen for a batch of `rows` query rows, 0 to `max_rows`.

    Arguments are the launcher's, workspace included: `selection(rows).buffers(...)` makes it once, up front.
    Nothing is looked up by name, allocated or locked here; Triton compiles at a kernel's first launch.
    """

    __slots__ = ("_launchers", "_selections", "max_rows")

    def __init__(self, selections: Sequence[Selection]) -> None:
        """`selections[rows]` for every number of rows."""
        self._selections = tuple(selections)
        self._launchers = [selection.launcher for selection in selections]
        self.max_rows = len(selections) - 1

    def __call__(self, rows: int, /, **arguments: Any) -> None:
        """`IndexError` over `max_rows`."""
        self._launchers[rows](**arguments)

    def selection(self, rows: int) -> Selection:
        """What runs for this number of rows, and why."""
        return self._selections[rows]

    def selections(self) -> Mapping[int, Selection]:
        """The distinct choices, each by the largest number of rows it serves."""
        last = {id(selection): rows for rows, selection in enumerate(self._selections)}
        return {rows: self._selections[rows] for rows in sorted(last.values())}
