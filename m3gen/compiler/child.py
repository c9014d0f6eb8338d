"""The worker's process: `python -m m3gen.compiler.child HANDLER REQUESTS RESULTS PARENT`.

Answers each request with ("ok", value), ("error", one line) or, for a `UserError`, ("refused", one line)
until the pipe ends; ("ready", None) comes first, once the handler is imported. Dies with its parent, however
that dies, even while a compiler holds the GIL.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from m3gen.compiler import wire
from m3gen.errors import UserError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_MAX_FILE = 1 << 30  # bytes of any file the child writes, its log among them
_REASON_CHARACTERS = 400


def main(arguments: list[str]) -> int:
    handler_name, requests, results, parent = arguments[0], *map(int, arguments[1:4])
    _die_with(parent)
    for descriptor in (requests, results):
        os.set_inheritable(descriptor, False)  # or a compiler's own child could hold the pipe open
    _limit_files()
    try:
        handler = _import(handler_name)
    except Exception as error:
        wire.write(results, wire.pack(("error", f"cannot import {handler_name}: {_one_line(error)}")))
        return 1
    wire.write(results, wire.pack(("ready", None)))
    buffer = bytearray()
    while (request := wire.read(requests, buffer)) is not None:
        wire.write(results, _answer(handler, request[0]))
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _answer(handler: Callable[[Any], Any], payload: Any) -> bytes:
    try:
        return wire.pack(("ok", handler(payload)))
    except UserError as error:
        return wire.pack(("refused", " ".join(str(error).split())))
    except BaseException as error:  # SystemExit too: the handler does not decide over the worker
        return wire.pack(("error", _one_line(error)))


def _import(name: str) -> Callable[[Any], Any]:
    module, _, attribute = name.partition(":")
    handler = getattr(importlib.import_module(module), attribute)
    if not callable(handler):
        raise TypeError(f"{name} is no function")
    return handler  # type: ignore[no-any-return]


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends; at once if it is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _limit_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = _MAX_FILE if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:_REASON_CHARACTERS]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
