"""`WorkerPool`: payloads to child processes under a deadline, answers back, whatever the children do.

Every payload is answered exactly once, unless a handler finds what the user has to mend. A child that
aborts, hangs, ignores SIGTERM or is killed costs its own payload and is replaced. Children are spawned, never
forked, live in sessions of their own (Ctrl-C does not reach them) and die with the thread that started them,
so a pool belongs to one thread.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from m3gen.compiler import wire
from m3gen.compiler.worker import Worker
from m3gen.errors import UserError
from m3gen.spec import Status

COMPILE_CANDIDATE = "m3gen.compiler.candidate:compile_candidate"
_START_SECONDS = 120.0  # to import the handler: torch and triton take 3 s, on a busy machine far more
_LAST_WORDS_SECONDS = 2.0  # between a closed pipe and the end of the process that closed it


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to one payload: the handler's `value` when `status` is OK, else a one-line `reason`.

    RUNTIME: the handler raised. COMPILE_ABORT: the child died. TIMEOUT: it was killed at the deadline.
    """

    ticket: int
    value: Any
    status: Status
    reason: str
    seconds: float  # wall clock since the payload was handed to the child


@dataclass(slots=True)
class _Task:
    ticket: int
    frame: bytes
    started: float = 0.0
    deadline: float = 0.0


@dataclass(slots=True)
class _Slot:
    worker: Worker
    task: _Task | None
    answered: int = 0


class WorkerPool:
    """`handler` is "module:function", imported in each child; payloads and answers are pickled.

    `env` adds to the environment of the children. Children are started as payloads need them, and replaced
    after `payloads_per_child`: LLVM and Triton's caches keep about 0.6 MB of each compile.
    """

    def __init__(
        self,
        handler: str = COMPILE_CANDIDATE,
        *,
        jobs: int = 2,
        deadline_s: float = 120.0,
        env: Mapping[str, str] | None = None,
        payloads_per_child: int = 500,
    ) -> None:
        if jobs < 1 or deadline_s <= 0 or payloads_per_child < 1:
            raise ValueError(
                f"{jobs=}, {deadline_s=}, {payloads_per_child=}: expected 1 or more, over 0, 1 or more"
            )
        self._handler = handler
        self._jobs = jobs
        self._deadline_s = deadline_s
        self._env = dict(env or {})
        self._payloads_per_child = payloads_per_child
        self._queue: deque[_Task] = deque()
        self._slots: list[_Slot] = []
        self._next_ticket = 0
        self._closed = False
        self._refusal = ""

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pending(self) -> int:
        """Payloads not answered yet, queued or being worked on."""
        return len(self._queue) + sum(slot.task is not None for slot in self._slots)

    @property
    def idle(self) -> int:
        """Workers that would take a payload at once, started or not."""
        return max(0, self._jobs - self.pending)

    def submit(self, payload: Any) -> int:
        """Queue one payload; its ticket comes back in a `Done`. Raises what pickle raises for the payload."""
        if self._closed:
            raise RuntimeError("the pool is closed")
        ticket = self._next_ticket
        self._queue.append(_Task(ticket, wire.pack(payload)))
        self._next_ticket += 1
        self._assign()
        return ticket

    def poll(self, timeout_s: float | None = None) -> list[Done]:
        """Answers that have come, waiting up to `timeout_s` (None: as long as it takes) for the first one.

        Empty when nothing is pending or nothing came in time. `UserError` when a handler raised one: what the
        user has to mend is no fault of the payload, whose answer it would have been.
        """
        until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        done: list[Done] = []
        while self.pending and not done and not self._refusal:
            self._assign()
            now = time.monotonic()
            deadlines = [slot.task.deadline for slot in self._slots if slot.task]
            self._wait(max(0.0, min([until, *deadlines]) - now))
            for slot in list(self._slots):
                done += self._collect(slot)
            if time.monotonic() >= until:
                break
        if self._refusal and not done:
            raise UserError(self._refusal)
        self._assign()
        return done

    def close(self) -> None:
        """Kill and reap every child; payloads still pending are never answered. Idempotent."""
        self._closed = True
        self._queue.clear()
        while self._slots:
            self._slots.pop().worker.kill()

    def _assign(self) -> None:
        """Hand queued payloads to free workers, starting workers up to `jobs`."""
        while self._queue and not self._closed:
            for slot in [slot for slot in self._slots if slot.task is None and not slot.worker.alive]:
                self._lost(slot, Status.COMPILE_ABORT, "")  # died idle: that is no payload's fault
            free = next((slot for slot in self._slots if slot.task is None), None)
            if free is None:
                if len(self._slots) >= self._jobs:
                    return
                free = _Slot(Worker(self._handler, {**os.environ, **self._env}), None)
                self._slots.append(free)
            free.task = self._queue.popleft()
            self._hand_over(free.task, free.worker)

    def _hand_over(self, task: _Task, worker: Worker) -> None:
        task.started = time.monotonic()
        task.deadline = task.started + (self._deadline_s if worker.ready else _START_SECONDS)
        if worker.ready:
            worker.send(task.frame)

    def _wait(self, timeout_s: float) -> None:
        poller = select.poll()
        for slot in self._slots:
            poller.register(slot.worker.descriptor, select.POLLIN)
        unsent = any(slot.task and not slot.worker.flush() for slot in self._slots)
        # A payload that its pipe did not take whole is tried again soon; they are small, so this is rare.
        poller.poll(min(timeout_s, 0.01) * 1000 if unsent else timeout_s * 1000)

    def _collect(self, slot: _Slot) -> list[Done]:
        """What one worker has to say: at most one answer."""
        task = slot.task
        try:
            answer = slot.worker.receive()
        except EOFError:
            slot.worker.wait_for_end(_LAST_WORDS_SECONDS)
            return self._lost(slot, Status.COMPILE_ABORT, "the worker ")
        if answer is None or task is None:
            if task is not None and time.monotonic() >= task.deadline:
                limit = task.deadline - task.started
                return self._lost(slot, Status.TIMEOUT, f"killed after {limit:g} s; the worker ")
            return []
        kind, value = answer
        if kind == "ready":
            slot.worker.ready = True
            self._hand_over(task, slot.worker)
            return []
        seconds = time.monotonic() - task.started
        slot.task = None
        slot.answered += 1
        if slot.answered >= self._payloads_per_child:
            self._slots.remove(slot)
            slot.worker.kill()
        if kind == "ok":
            return [Done(task.ticket, value, Status.OK, "", seconds)]
        if kind == "refused":
            self._refusal = str(value)
            return []
        return [Done(task.ticket, None, Status.RUNTIME, str(value), seconds)]

    def _lost(self, slot: _Slot, status: Status, what: str) -> list[Done]:
        """Kill and forget the worker; answer for the payload it had, if any."""
        self._slots.remove(slot)
        how = slot.worker.kill()
        if slot.task is None:
            return []
        return [Done(slot.task.ticket, None, status, what + how, time.monotonic() - slot.task.started)]
