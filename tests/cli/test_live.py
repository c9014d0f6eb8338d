"""What is on show while a session runs."""

from __future__ import annotations

import io
import signal

import pytest
from rich.console import Console

from m3gen.cli import live
from tests.report.rows import progress


def test_lines_come_at_every_change_of_phase_and_now_and_then() -> None:
    out, times = io.StringIO(), iter([0.0, 1.0, 9.9, 10.0, 12.0, 13.0])
    view = live.LineView(Console(file=out, width=40), clock=lambda: next(times))
    for _ in range(4):
        view.update(progress())
    for _ in range(2):
        view.update(progress(phase="verify"))
    assert [line.split(",")[0] for line in out.getvalue().splitlines()] == [
        "searching",
        "searching",
        "verifying finalists",
    ]


def test_a_terminal_gets_a_picture_that_leaves_nothing_behind() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"TERM": "xterm"})
    with live.view(console, "predict-amd-1") as view:
        assert isinstance(view, live.LiveView)
        view.update(progress())
    assert "sparse_decode TP 4 bf16 rows 1" in out.getvalue()
    assert out.getvalue().rstrip().endswith("\x1b[2K")  # the last thing done is to erase a line


def test_a_terminal_that_cannot_move_its_cursor_gets_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(live.view(console, "predict-amd-1"), live.LineView)


def test_the_picture_says_that_it_is_stopping() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"TERM": "xterm"})
    with live.view(console, "predict-amd-1") as view:
        view.stopping()
        view.update(progress())
    assert "Ctrl-C again ends at once" in out.getvalue()


def test_the_handler_of_before_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with live.stop_on_interrupt(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(RuntimeError), live.stop_on_interrupt(lambda: None):
        raise RuntimeError
    assert signal.getsignal(signal.SIGINT) is before
