"""`Slot`: what runs on a node of a Ray cluster: one worker process under a deadline, inside a Ray actor."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping

from m3gen import __version__
from m3gen.compiler.fingerprint import fingerprint
from m3gen.compiler.pool import Done, WorkerPool
from m3gen.errors import UserError


class Slot:
    """Answers one payload at a time. The deadline and the kill of the process group are those of `WorkerPool`, whose
    child dies with this process, however it ends."""

    def __init__(self, handler: str, deadline_s: float, env: Mapping[str, str]) -> None:
        self._pool = WorkerPool(handler, jobs=1, deadline_s=deadline_s, env=env)

    def introduce(self) -> tuple[str, str, str]:
        """What this node would compile with (see `identity`), the name of its machine, its id in the cluster."""
        import ray

        return identity(), os.uname().nodename, ray.get_runtime_context().get_node_id()

    def work(self, payload: bytes) -> Done | str:
        """The answer to a pickled payload, or the line of a `UserError` of the handler. The ticket is of this slot."""
        self._pool.submit(pickle.loads(payload))
        try:
            while not (done := self._pool.poll()):
                pass
        except UserError as error:
            return str(error)
        return done[0]


def identity() -> str:
    """What must be equal on all nodes for their answers to be those of the driver."""
    python = ".".join(map(str, sys.version_info[:2]))
    return f"m3gen {__version__}, {fingerprint()}, Python {python}"
