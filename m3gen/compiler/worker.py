"""`Worker`: one child process, its pipes and its log. Knows nothing of queues or deadlines."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import m3gen
from m3gen.compiler import wire

_TAIL_BYTES = 16 << 10
_TAIL_CHARACTERS = 600
_CHUNK = 1 << 20
_REAP_SECONDS = 10.0
# Frames of native and Python stacks: what was being done stands above them.
_STACK_LINE = re.compile(r"^(#\d+ |\s*File \"|0x[0-9a-f]+|\S+\(\S*\+0x[0-9a-f]+\))")


class Worker:
    """A child in its own session and process group, started at once.

    `ready` once the handler is imported. `descriptor` is readable when something came or the child is gone.
    """

    def __init__(self, handler: str, environment: Mapping[str, str]) -> None:
        self.ready = False
        self._log = tempfile.TemporaryFile(prefix="m3gen-worker-")  # noqa: SIM115 (closed by kill)
        # The child writes at the end wherever the parent has cut the file.
        fcntl.fcntl(self._log.fileno(), fcntl.F_SETFL, os.O_APPEND)
        child_reads, self._requests = os.pipe()
        self.descriptor, child_writes = os.pipe()
        command = [sys.executable, "-P", "-m", "m3gen.compiler.child", handler]
        try:
            self._process = subprocess.Popen(
                [*command, str(child_reads), str(child_writes), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                env=_with_package(environment),
                pass_fds=(child_reads, child_writes),
                start_new_session=True,
            )
        finally:
            os.close(child_reads)
            os.close(child_writes)
        os.set_blocking(self._requests, False)
        os.set_blocking(self.descriptor, False)
        self._outbox = memoryview(b"")
        self._inbox = bytearray()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        # Without reaping: while the leader is a zombie its number cannot go to another process group.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None

    def send(self, frame: bytes) -> None:
        """Queue one frame; `flush` until it is out. Cuts the log: its tail belongs to this payload."""
        self._log.truncate(0)
        self._outbox = memoryview(frame)
        self.flush()

    def flush(self) -> bool:
        """Write what the pipe takes now; True when nothing is left. A dead child swallows the rest."""
        try:
            while self._outbox:
                self._outbox = self._outbox[os.write(self._requests, self._outbox) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._outbox = memoryview(b"")
        return True

    def receive(self) -> tuple[str, Any] | None:
        """The next answer, None when there is none; `EOFError` when the child is gone or talks nonsense."""
        while True:
            try:
                found = wire.take(self._inbox)
            except wire.FrameError as error:
                raise EOFError(str(error)) from None
            if found is not None:
                return found[0]  # type: ignore[no-any-return]
            try:
                chunk = os.read(self.descriptor, _CHUNK)
            except BlockingIOError:
                return None
            if not chunk:
                raise EOFError("the child closed its pipe")
            self._inbox += chunk

    def kill(self) -> str:
        """Kill the child with its group, reap it, close everything; says how it ended. Idempotent."""
        if self._log.closed:
            return ""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            code = self._process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:  # stuck in the kernel, e.g. on a dead network disk
            code = -signal.SIGKILL
        tail = self._tail()
        for descriptor in (self._requests, self.descriptor):
            os.close(descriptor)
        self._log.close()
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        return f"{how}: {tail}" if tail else how

    def wait_for_end(self, timeout_s: float) -> None:
        """Give a child that closed its pipe the time to die of what it is dying of."""
        until = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < until:
            time.sleep(0.005)

    def _tail(self) -> str:
        """The end of the child's output on one line, stack frames left out."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _TAIL_BYTES))
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines()]
        text = " | ".join(line for line in lines if line and not _STACK_LINE.match(line))
        return text[-_TAIL_CHARACTERS:]


def _with_package(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a child finds this very m3gen, wherever the parent found it."""
    root = str(Path(m3gen.__file__).resolve().parents[1])
    path = environment.get("PYTHONPATH")
    if root == sysconfig.get_path("purelib"):  # found anyway, and the standard library must stay ahead of it
        return dict(environment)
    return {**environment, "PYTHONPATH": os.pathsep.join([root, path] if path else [root])}
