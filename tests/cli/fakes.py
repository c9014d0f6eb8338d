"""A session and an export that do nothing but say that they did."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from m3gen.cli import work
from m3gen.cli.work import Exported
from m3gen.search.result import SessionResult, WinnerRow
from m3gen.spec import Problem
from tests.report import rows


class FakeSession:
    """Takes what `work.open_session` takes, tells its listener twice, and ends as `end` says."""

    def __init__(self, end: Callable[[FakeSession], SessionResult]) -> None:
        self.problems: Sequence[Problem] = ()
        self.options: dict[str, Any] = {}
        self.stopped = 0
        self._end = end

    def opened(self, store: Any, problems: Sequence[Problem], device: Any, **options: Any) -> FakeSession:
        self.problems = problems
        self.options = {"store": store, "device": device, **options}
        return self

    def run(self) -> SessionResult:
        listener = self.options["listener"]
        listener.update(rows.progress())
        result = self._end(self)
        listener.update(result.progress)
        return result

    def stop(self) -> None:
        self.stopped += 1


class FakeExport:
    """Names the files that it would write."""

    def __init__(self) -> None:
        self.rows: Sequence[WinnerRow] | None = None

    def __call__(self, store: Any, rows: Sequence[WinnerRow], tables_dir: Path, modules_dir: Path) -> Exported:
        self.rows = rows
        return Exported((tables_dir / "gfx942/sparse_decode.json",), (modules_dir / "gfx942/sparse_decode_0.py",))


def all_won(session: FakeSession) -> SessionResult:
    return rows.result(*(rows.row(problem) for problem in session.problems))


def one_lost(session: FakeSession) -> SessionResult:
    return rows.result(*(rows.row(problem) for problem in session.problems[1:]))


def none_won(session: FakeSession) -> SessionResult:
    return rows.result()


def interrupted_once(session: FakeSession) -> SessionResult:
    """Ctrl-C in the middle, which asks the session to stop."""
    os.kill(os.getpid(), signal.SIGINT)
    assert session.stopped == 1
    return rows.result(rows.row(session.problems[0]), ended="interrupted")


def interrupted_twice(session: FakeSession) -> SessionResult:
    interrupted_once(session)
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("the second Ctrl-C did not end it")


def install(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[FakeSession], SessionResult]
) -> tuple[FakeSession, FakeExport]:
    """Put both in the place of the real ones."""
    session, export = FakeSession(end), FakeExport()
    monkeypatch.setattr(work, "open_session", session.opened)
    monkeypatch.setattr(work, "export", export)
    return session, export
