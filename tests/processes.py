"""The processes that a test may have left behind."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def processes_with(setting: str) -> set[int]:
    """Ids of the running processes, this one aside, in whose environment `setting` stands ("NAME=value").

    By environment and not by parent: a process whose parent was killed has another one.
    """
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile, or another user's
            if setting.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found - {os.getpid()}
