"""`Executor`: where worker processes run, and the executors by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from m3gen.errors import UserError
from m3gen.spec import Status

LOCAL, RAY = "local", "ray"
NAMES = (LOCAL, RAY)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a place must have to answer a pool's payloads.

    Any CPU compiles for every `arch`; with `gpu`, the payload runs on a GPU of that `arch`.
    """

    arch: str
    gpu: bool = False


class Done(Protocol):
    """An answer of a pool: `value` when the handler returned (`status` OK), else how its process ended."""

    @property
    def ticket(self) -> int: ...
    @property
    def value(self) -> Any: ...
    @property
    def status(self) -> Status: ...
    @property
    def reason(self) -> str: ...
    @property
    def seconds(self) -> float: ...


class Pool(Protocol):
    """Worker processes that answer payloads; a worker that dies or hangs costs only its payload."""

    def submit(self, payload: Any) -> int: ...
    def poll(self, timeout_s: float) -> Sequence[Done]: ...
    def close(self) -> None: ...


class Executor(Protocol):
    """Makes pools of worker processes. Whatever answers, this process alone writes to the store.

    `slots` payloads are worked on at a time. `m3gen.testing.executor_suite` says what every executor keeps.
    """

    @property
    def slots(self) -> int: ...

    def pool(self, handler: str, needs: Needs, *, deadline_s: float, env: Mapping[str, str]) -> Pool:
        """Workers that answer payloads by "module:function", each within `deadline_s`, `env` in their environment.

        A worker that dies or hangs costs only its payload. `UserError` when there is nowhere that has what it needs.
        """
        ...

    def close(self) -> None:
        """Let go of everything; pools must be closed before. Idempotent."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalExecutor:
    """Child processes of this one."""

    def __init__(self, jobs: int) -> None:
        self.slots = jobs

    def pool(self, handler: str, needs: Needs, *, deadline_s: float, env: Mapping[str, str]) -> Pool:
        from m3gen.compiler.pool import WorkerPool

        if needs.gpu:
            raise UserError(
                f"--executor local has no GPU of {needs.arch} to give out: name a cluster that has one"
            )
        return WorkerPool(handler, jobs=self.slots, deadline_s=deadline_s, env=env)

    def close(self) -> None:
        pass

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_executor(name: str, address: str | None, *, jobs: int | None, cpus: int) -> Executor:
    """The executor called `name`. `jobs` is how many payloads at a time: by default `cpus`, those of this machine, or
    all CPUs of the cluster at `address`. `UserError` for a name there is not, an address for what takes none, a
    package that is missing, a cluster that does not answer.
    """
    if name not in NAMES:
        raise UserError(f"--executor {name!r}: expected {' or '.join(NAMES)}")
    if name == RAY:
        from m3gen.search.ray_executor import RayExecutor

        return RayExecutor.open(address, jobs=jobs, cpus=cpus)
    if address is not None:
        raise UserError(f"--address {address} names a Ray cluster: give --executor ray with it")
    return LocalExecutor(jobs or cpus)
