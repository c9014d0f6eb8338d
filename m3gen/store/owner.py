"""Who holds a claim: a process, told so that others on its machine can see when it is gone."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def this_process() -> str:
    """ "BOOT NAMESPACE PID START" of the calling process; the process number alone where there is no /proc."""
    pid = os.getpid()
    return " ".join((*_machine(), str(pid), _start_of(pid) or "?"))


def is_gone(owner: str) -> bool:
    """Whether the process has certainly ended. False for one of another machine, of which nothing is known."""
    *machine, pid, start = owner.split(" ")
    if tuple(machine) != _machine() or not pid.isdecimal() or start == "?":
        return False
    return _start_of(int(pid)) != start


@cache
def _machine() -> tuple[str, str]:
    """This boot of this machine, and the namespace in which its process numbers hold."""
    try:
        return _BOOT_ID.read_text().strip(), os.readlink("/proc/self/ns/pid")
    except OSError:
        return "?", "?"


def _start_of(pid: int) -> str:
    """When a process began, in clock ticks since boot; "" when it runs no more. Numbers are given out again."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
