"""Handlers for `WorkerPool` that go wrong in every way a compiler can, and gates that do not check: importable by
name in a child."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from m3gen.errors import UserError

if TYPE_CHECKING:
    from m3gen.compiler.request import CompileRequest, CompileResult
    from m3gen.evaluate.gate import GateRequest
    from m3gen.evaluate.verification import Verification


def echo(payload: Any) -> Any:
    """The payload itself."""
    return payload


def echo_pid(payload: Any) -> tuple[Any, int]:
    """The payload and the process that answered."""
    return payload, os.getpid()


def perform(deed: tuple[str, Any]) -> Any:
    """Do what `deed` names with its argument: one handler, so that one worker can meet all faults in turn."""
    name, argument = deed
    deeds: dict[str, Callable[[Any], Any]] = {
        "echo": echo,
        "abort": abort,
        "raise": raise_error,
        "refuse": refuse,
        "exit": exit_process,
        "suicide": kill_itself,
        "hang": hang,
        "breed": hang_with_child,
        "unpicklable": unpicklable,
        "flood": flood,
        "getenv": os.getenv,
        "once": hang_once,
        "parricide": kill_parent,
    }
    return deeds[name](argument)


def compile_or_perform(payload: tuple[CompileRequest, tuple[str, Any] | None]) -> CompileResult:
    """What compiling the candidate gives, unless a deed comes with it."""
    from m3gen.compiler.candidate import compile_candidate

    request, deed = payload
    return compile_candidate(request) if deed is None else perform(deed)


def wave_through(request: GateRequest) -> Verification:
    """A gate that runs nothing: OK for whatever renders."""
    from m3gen import ops
    from m3gen.codegen import render
    from m3gen.evaluate.verification import Verification
    from m3gen.spec import Status

    source = render(ops.get(request.op), request.problem, request.config)
    return Verification(status=Status.OK, on="nothing", source_sha=source.sha)


def abort(message: str) -> None:
    """What LLVM does on a failed assertion: a line on stderr, then SIGABRT."""
    os.write(2, f"LLVM ERROR: {message}\n".encode())
    os.abort()


def raise_error(message: str) -> None:
    """An exception of several lines."""
    raise ValueError(f"first line\n  {message}")


def refuse(message: str) -> None:
    """What a handler does that cannot work for any payload."""
    raise UserError(message)


def exit_process(code: int) -> None:
    """What a library does that thinks it owns the process."""
    raise SystemExit(code)


def kill_itself(_: Any) -> None:
    """What the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def hang(path: str | None) -> None:
    """Neither answers nor ends, signals ignored and the GIL held, as a compiler that loops would.

    Makes an empty file at `path`, if given, when it begins.
    """
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    library = ctypes.PyDLL(None)  # unlike CDLL it keeps the GIL
    if path:
        open(path, "w").close()
    while True:
        library.sleep(60)


def hang_with_child(path: str) -> None:
    """Start a process of its own, write its number to `path`, and hang with it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(path, "w") as file:
        file.write(str(child.pid))
    hang(None)


def hang_once(path: str) -> str:
    """Hang the first time, which an empty file at `path` tells from the second."""
    if not os.path.exists(path):
        hang(path)
    return "the second time"


def kill_parent(_: Any) -> None:
    """What the kernel does when memory runs out and it takes the worker for the culprit."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def unpicklable(_: Any) -> Any:
    """A value that cannot travel."""
    return lambda: None


def flood(size: int) -> int:
    """Print `size` bytes, then answer."""
    sys.stdout.write("x" * size)
    return size
