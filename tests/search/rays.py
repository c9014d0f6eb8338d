"""What the tests on Ray clusters do to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from m3gen.search.executor import Pool
from m3gen.testing.executor_suite import PATIENCE_S, eventually


def poll_until(pool: Pool, holds: Callable[[], bool]) -> None:
    """Lets the pool work until it holds; nothing may be answered by then."""

    def polled() -> bool:
        assert pool.poll(0.05) == []
        return holds()

    assert eventually(polled, PATIENCE_S)


def kill_slots() -> None:
    """Every slot of this process's cluster, as the kernel would when memory runs out."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            if (process / "cmdline").read_bytes().startswith(b"ray::Slot") and _started_by_us(int(process.name)):
                os.kill(int(process.name), signal.SIGKILL)


def _started_by_us(pid: int) -> bool:
    while pid > 1 and pid != os.getpid():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid == os.getpid()
