"""What is shown on standard error while a session runs, and what Ctrl-C does to it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from m3gen.report import progress as pictures
from m3gen.search.progress import Progress

STOPPING = "stopping; what has arrived is kept. Ctrl-C again ends at once"
_REDRAW_S = 0.25
_LINE_S = 10.0


class View(AbstractContextManager["View"], Protocol):
    """A listener of a session that is on show while its context lasts."""

    def update(self, progress: Progress) -> None: ...

    def stopping(self) -> None:
        """Say from now on that the session was asked to stop. Called from a signal handler."""
        ...


def view(console: Console, judge: str) -> View:
    """A picture that redraws itself on a terminal, a line now and then elsewhere."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, judge)
    return LineView(console)


class LiveView:
    """Redraws in place a few times a second and leaves nothing behind."""

    def __init__(self, console: Console, judge: str) -> None:
        self._live = Live(Text("starting"), console=console, transient=True, auto_refresh=False)
        self._judge = judge
        self._drawn = 0.0
        self._stopping = False

    def __enter__(self) -> LiveView:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def update(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._drawn >= _REDRAW_S:
            self._drawn = now
            picture = pictures.picture(progress, self._judge)
            foot = Text(STOPPING if self._stopping else "Ctrl-C stops and keeps everything", style="dim")
            self._live.update(Group(picture, foot), refresh=True)

    def stopping(self) -> None:
        self._stopping = True


class LineView:
    """A line at the start, at every change of phase, and every ten seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._phase = ""
        self._next = 0.0
        self._stopping = self._said = False

    def __enter__(self) -> LineView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def update(self, progress: Progress) -> None:
        if self._stopping and not self._said:
            self._said = True
            self._print(STOPPING)
        now = self._clock()
        if progress.phase != self._phase or now >= self._next:
            self._phase, self._next = progress.phase, now + _LINE_S
            self._print(pictures.line(progress))

    def stopping(self) -> None:
        self._stopping = True

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


@contextmanager
def stop_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls `stop`, the second raises `KeyboardInterrupt`."""

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
