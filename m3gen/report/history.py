"""What a store remembers beside its winners: sessions and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from m3gen.report import words
from m3gen.spec import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """One session. `state` is how it ended, "running" for one that has not or was killed; times are UTC."""

    id: int
    state: str
    started_at: str
    seconds: float
    problems: int
    arguments: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLine:
    """Candidates of one op that failed alike: `code` is the rule if there is one, `example` one reason."""

    op: str
    arch: str
    stage: str  # a stage of the evaluation, or "gate"
    status: Status
    code: str
    count: int
    example: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"status": str(self.status)}


def sessions(lines: Sequence[SessionLine]) -> RenderableType:
    if not lines:
        return Text("no sessions")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("session", "started (UTC)", "ended by", "time", "problems", "asked"):
        right = name in ("session", "problems", "time")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "asked")
    for line in lines:
        asked = ", ".join(f"{name} {value}" for name, value in line.arguments.items())
        table.add_row(
            str(line.id),
            line.started_at[:19].replace("T", " "),
            "running or killed" if line.state == "running" else line.state,
            words.duration(line.seconds),
            str(line.problems),
            Text(asked),
        )
    return Group(Text("sessions", style="bold"), table)


def failures(lines: Sequence[FailureLine]) -> RenderableType:
    if not lines:
        return Text("no failed candidates")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("arch", "op", "stage", "count", "what", "for example"):
        table.add_column(name, justify="right" if name == "count" else "left", overflow="fold")
    for line in lines:
        what = words.STATUSES[line.status] + (f" {line.code}" if line.code else "")
        cells = (line.arch, line.op, line.stage, f"{line.count:,}", what, line.example)
        table.add_row(*(Text(cell) for cell in cells))
    return Group(Text("failed candidates", style="bold"), table)
