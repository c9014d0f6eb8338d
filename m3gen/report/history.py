"""What a store remembers beside its winners: sessions and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.report import layout, words
from m3gen.store import FailureCount, SessionRecord


def sessions(records: Sequence[SessionRecord]) -> RenderableType:
    if not records:
        return Text("no sessions")
    cells = [
        (
            str(record.id),
            record.started_at[:19].replace("T", " "),
            "running or killed" if record.state == "running" else record.state,
            words.duration(record.seconds),
            str(record.problems),
            ", ".join(f"{name} {value}" for name, value in record.arguments.items()),
        )
        for record in records
    ]
    columns = (">session", "started (UTC)", "ended by", ">time", ">problems", "asked")
    return Group(layout.title("sessions"), layout.table(columns, cells, fold=("asked",)), Text(""))


def failures(counts: Sequence[FailureCount]) -> RenderableType:
    if not counts:
        return Text("no failed candidates")
    cells = [
        (
            one.arch,
            one.op,
            one.stage,
            f"{one.count:,}",
            words.STATUSES[one.status] + (f" ({one.code})" if one.code else ""),
            one.example,
        )
        for one in counts
    ]
    columns = ("arch", "op", "stage", ">count", "what", "for example")
    return Group(
        layout.title("failed candidates"),
        layout.table(columns, cells, fold=("what", "for example")),
        Text(""),
    )


def session_object(record: SessionRecord) -> dict[str, Any]:
    """A session as plain data."""
    return asdict(record)


def failure_object(count: FailureCount) -> dict[str, Any]:
    """Candidates that failed alike as plain data."""
    return asdict(count) | {"status": str(count.status)}
