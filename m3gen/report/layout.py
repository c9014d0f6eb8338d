"""The one look of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text


def table(columns: Iterable[str], rows: Iterable[Sequence[str | Text]], *, fold: Sequence[str] = ()) -> Table:
    """A table with a ruled heading and two blanks between columns. Text stays as it is: no markup.

    A name that starts with ">" makes a column of figures, aligned to the right. Only the columns named in
    `fold` give way where the terminal is too narrow.
    """
    found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        name = column.removeprefix(">")
        wraps = name in fold
        found.add_column(
            Text(name),
            justify="left" if name == column else "right",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )
    for row in rows:
        found.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return found


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what belongs to them, one pair a line."""
    found = Table.grid(padding=(0, 2, 0, 0))
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in rows:
        found.add_row(Text(name), Text(value))
    return found


def title(text: str) -> Text:
    return Text(text, style="bold")
