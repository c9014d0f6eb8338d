"""`RayPool`: payloads to slots on the nodes of a cluster, answers back, whatever becomes of the nodes."""

from __future__ import annotations

import pickle
import socket
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from m3gen.compiler.pool import Done
from m3gen.errors import UserError
from m3gen.search.ray_slot import Slot, identity
from m3gen.spec import Status

# Workers that a payload may take with it before it is charged. One may have been the machine's fault.
KILLS = 2
MOVES = 8  # times that a payload may lose its place at all, lost nodes included
_PLACE_S = 120.0  # for the cluster to give the first slot a place, on a busy machine
_KNOCK_S = 2.0
_REASON_CHARACTERS = 400
_GRACE_S = 180.0  # over a payload's deadline, before a slot that says nothing counts as lost


@dataclass(slots=True)
class _Task:
    ticket: int
    payload: bytes
    kills: int = 0
    moves: int = 0
    started: float = 0.0


@dataclass(slots=True, eq=False)
class _Place:
    """A slot: `answer` is what it was asked last, its introduction at first. `node`, its id, is known from then on."""

    actor: Any
    answer: Any
    since: float
    node: str = ""
    task: _Task | None = None


class RayPool:
    """The pool of `compiler.pool.WorkerPool`, its workers wherever the cluster has room.

    A payload whose slot died, alone or with its node, goes to another: it is answered as COMPILE_ABORT once it took
    `KILLS` slots with it. A slot that died is replaced where there is room.
    """

    def __init__(
        self,
        handler: str,
        *,
        slots: int,
        resources: Mapping[str, float],
        deadline_s: float,
        env: Mapping[str, str],
        where: str,
    ) -> None:
        import ray

        self._ray = ray
        self._where = where
        self._patience_s = deadline_s + _GRACE_S
        custom = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU")}
        self._make = ray.remote(Slot).options(
            num_cpus=resources.get("CPU", 0),
            num_gpus=resources.get("GPU", 0),
            resources=custom,
            max_restarts=0,
            max_task_retries=0,
        )
        self._arguments = handler, deadline_s, dict(env)
        self._slots = slots
        self._queue: deque[_Task] = deque()
        self._places: list[_Place] = []
        self._next_ticket = 0
        self._closed = False
        self._refusal = ""
        self._homeless_since: float | None = None

    @property
    def pending(self) -> int:
        """Payloads not answered yet, queued or being worked on."""
        return len(self._queue) + sum(place.task is not None for place in self._places)

    def submit(self, payload: Any) -> int:
        """Queue one payload; its ticket comes back in a `Done`. Raises what pickle raises for the payload."""
        if self._closed:
            raise RuntimeError("the pool is closed")
        ticket = self._next_ticket
        self._next_ticket += 1
        self._queue.append(_Task(ticket, pickle.dumps(payload)))
        self._assign()
        return ticket

    def poll(self, timeout_s: float | None = None) -> list[Done]:
        """As `WorkerPool.poll`. `UserError` too when the cluster has no room for a single slot for long."""
        until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        done: list[Done] = []
        while self.pending and not done and not self._refusal:
            self._assign()
            self._insist_on_a_place()
            for place in self._ready(max(0.0, min(1.0, until - time.monotonic()))):
                done += self._hear(place)
            done += self._give_up_on_the_silent()
            if time.monotonic() >= until:
                break
        if self._refusal and not done:
            raise UserError(self._refusal)
        self._assign()
        return done

    def close(self) -> None:
        """End every slot with its worker; payloads still pending are never answered. Idempotent."""
        self._closed = True
        self._queue.clear()
        while self._places:
            self._end(self._places[-1])

    def _assign(self) -> None:
        """Hand queued payloads to free slots, asking the cluster for slots up to `slots`."""
        if self._closed:
            return
        while len(self._places) < min(self._slots, self.pending):
            actor = self._make.remote(*self._arguments)
            self._places.append(_Place(actor, actor.introduce.remote(), time.monotonic()))
        for place in self._places:
            if self._queue and place.node and place.task is None:
                task = place.task = self._queue.popleft()
                place.since = task.started = time.monotonic()
                place.answer = place.actor.work.remote(task.payload)

    def _ready(self, timeout_s: float) -> list[_Place]:
        """Slots that have answered or are lost, waiting up to `timeout_s` for the first."""
        waiting = {place.answer: place for place in self._places if place.answer is not None}
        first, rest = self._ray.wait(list(waiting), timeout=timeout_s)
        more, _ = self._ray.wait(rest, num_returns=len(rest), timeout=0) if rest and first else ([], [])
        return [waiting[answer] for answer in (*first, *more)]

    def _hear(self, place: _Place) -> list[Done]:
        try:
            answer = self._ray.get(place.answer)
        except self._ray.exceptions.RayActorError as error:
            return self._lost(place, error)
        except self._ray.exceptions.RayTaskError as error:  # the slot itself, or a payload that does not travel
            return self._failed(place, error)
        place.answer = None
        task, place.task = place.task, None
        if task is None:
            self._welcome(place, *answer)
            return []
        if isinstance(answer, str):
            self._refusal = answer
            return []
        return [replace(answer, ticket=task.ticket)]

    def _welcome(self, place: _Place, theirs: str, host: str, node: str) -> None:
        if theirs != identity():
            self._refusal = (
                f"the node {host} of {self._where} has {theirs}, and here is {identity()}: "
                "install the same on all nodes, and give them the same Triton settings"
            )
        place.node = node

    def _failed(self, place: _Place, error: Exception) -> list[Done]:
        reason = " ".join(str(error.__cause__ or error).split())[-_REASON_CHARACTERS:]
        task, place.task, place.answer = place.task, None, None
        if task is None:  # it could not even introduce itself
            self._refusal = f"a node of {self._where} cannot run m3gen ({reason}): install m3gen there"
            return []
        return [Done(task.ticket, None, Status.RUNTIME, reason, time.monotonic() - task.started)]

    def _lost(self, place: _Place, error: Exception) -> list[Done]:
        """Forget a slot that is gone; its payload goes to another, or is charged."""
        task = place.task
        killed = self._node_answers(place)  # or its node is lost, which is no payload's fault
        self._end(place)
        if task is None:
            return []
        task.moves += 1
        task.kills += killed
        if task.kills < KILLS and task.moves < MOVES:
            self._queue.appendleft(task)
            return []
        last = " ".join(str(error).split())[-_REASON_CHARACTERS:]
        reason = f"it lost its worker on {self._where} {task.moves} times, the last time so: {last}"
        return [Done(task.ticket, None, Status.COMPILE_ABORT, reason, time.monotonic() - task.started)]

    def _node_answers(self, place: _Place) -> bool:
        """Whether the node of a slot still takes connections: the cluster itself notices the end of a node late."""
        for node in self._ray.nodes():
            if node["NodeID"] == place.node and node["Alive"]:
                with suppress(OSError):
                    socket.create_connection(
                        (node["NodeManagerAddress"], node["NodeManagerPort"]), _KNOCK_S
                    ).close()
                    return True
        return False

    def _give_up_on_the_silent(self) -> list[Done]:
        """Slots that should have answered long ago, their own deadline included, are as good as lost."""
        now = time.monotonic()
        silent = [place for place in self._places if place.task and now - place.since > self._patience_s]
        return [done for place in silent for done in self._lost(place, TimeoutError("it fell silent"))]

    def _insist_on_a_place(self) -> None:
        """`UserError` when no slot has had a place on any node for long."""
        if any(place.node for place in self._places):
            self._homeless_since = None
            return
        now = time.monotonic()
        if self._homeless_since is None:
            self._homeless_since = now
        if now - self._homeless_since > _PLACE_S:
            raise UserError(
                f"{self._where} has had no room for a worker for {_PLACE_S:g} s: "
                "add a node or free one, and run again; what is known is kept"
            )

    def _end(self, place: _Place) -> None:
        self._places.remove(place)
        self._ray.kill(place.actor)
