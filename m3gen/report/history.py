"""What a store remembers beside its winners: sessions and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.report import layout, words
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
    cells = [
        (
            str(line.id),
            line.started_at[:19].replace("T", " "),
            "running or killed" if line.state == "running" else line.state,
            words.duration(line.seconds),
            str(line.problems),
            ", ".join(f"{name} {value}" for name, value in line.arguments.items()),
        )
        for line in lines
    ]
    columns = (">session", "started (UTC)", "ended by", ">time", ">problems", "asked")
    return Group(layout.title("sessions"), layout.table(columns, cells, fold=("asked",)), Text(""))


def failures(lines: Sequence[FailureLine]) -> RenderableType:
    if not lines:
        return Text("no failed candidates")
    cells = [
        (
            line.arch,
            line.op,
            line.stage,
            f"{line.count:,}",
            words.STATUSES[line.status] + (f" ({line.code})" if line.code else ""),
            line.example,
        )
        for line in lines
    ]
    columns = ("arch", "op", "stage", ">count", "what", "for example")
    return Group(
        layout.title("failed candidates"),
        layout.table(columns, cells, fold=("what", "for example")),
        Text(""),
    )
