"""Worker processes on the nodes of a Ray cluster: an existing one by its address, or one of this machine alone.

A node compiles for every architecture on the CPUs that Ray finds. A node with GPUs says so itself, with one resource
per architecture: `ray start --address=HEAD:6379 --resources='{"m3gen_gfx942": 8}'` on a machine with eight of them.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from m3gen.errors import UserError
from m3gen.search.executor import Needs, Pool
from m3gen.search.ray_pool import RayPool

RESOURCE = "m3gen_{arch}"  # of a node, as many as it has GPUs of `arch`
_ANSWER_S = 5.0  # for the head of a cluster to accept a connection
_STORE_BYTES = 100 << 20  # of objects, on a cluster of our own: candidates and answers are some 100 KB


class RayExecutor:
    """A driver's connection to a cluster; made by `open`, one a process."""

    def __init__(self, ray: Any, where: str, slots: int) -> None:
        self._ray = ray
        self._where = where
        self.slots = slots

    @classmethod
    def open(cls, address: str | None, *, jobs: int | None, cpus: int) -> RayExecutor:
        """Connect to the cluster at `address` (HOST:PORT of its head, or auto), or start one of `jobs` or `cpus` CPUs
        on this machine. `UserError` without the package or without an answer."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ModuleNotFoundError as error:
            raise UserError(
                f"--executor ray needs the Python package {error.name}, on every node as here: pip install ray"
            ) from error
        if address is None:
            where, slots = "the cluster of this machine", jobs or cpus
            start = {"num_cpus": slots, "object_store_memory": _STORE_BYTES, "_node_ip_address": "127.0.0.1"}
        else:
            where, slots, start = f"the Ray cluster at {address}", 0, {"address": address}
            _probe(address)
        try:
            ray.init(
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level=logging.FATAL,
                **start,
            )
        except Exception as error:  # Ray raises a dozen kinds, its own and Python's
            raise UserError(
                f"{where} does not answer ({_first_line(error)}): see that it runs, with this machine as a node, "
                "or leave --address out to start one here"
            ) from error
        ray._private.worker.print_to_stdstream = _say_nothing
        total = int(ray.cluster_resources().get("CPU", 0))
        if total < 1:
            ray.shutdown()
            raise UserError(f"{where} has no CPUs to compile on: ray start --num-cpus=N on its nodes")
        return cls(ray, where, slots or jobs or total)

    def pool(self, handler: str, needs: Needs, *, deadline_s: float, env: Mapping[str, str]) -> Pool:
        resources = resources_of(needs)
        has = self._ray.cluster_resources()
        if any(has.get(name, 0) < amount for name, amount in resources.items()):
            wanted = RESOURCE.format(arch=needs.arch)
            known = ", ".join(sorted(name for name in has if name.startswith(RESOURCE.format(arch="")))) or "none"
            raise UserError(
                f"no node of {self._where} has a GPU of {needs.arch} (its nodes say {known}): add one with ray start "
                f"--address=HEAD:PORT --num-gpus=1 --resources='{{\"{wanted}\": 1}}'"
            )
        most = int(min(has[name] // amount for name, amount in resources.items()))
        return RayPool(
            handler,
            slots=max(1, min(self.slots, most)),
            resources=resources,
            deadline_s=deadline_s,
            env=env,
            where=self._where,
        )

    def close(self) -> None:
        self._ray.shutdown()

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def resources_of(needs: Needs) -> dict[str, float]:
    """What one slot takes of a node. Ray shows a slot no GPU but the one that it was given."""
    if needs.gpu:
        return {"CPU": 1, "GPU": 1, RESOURCE.format(arch=needs.arch): 1}
    return {"CPU": 1}


def _probe(address: str) -> None:
    """`UserError` unless something listens: Ray itself tries for a minute, and then ends the process."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "//" in host:
        raise UserError(
            f"--address {address!r}: expected HOST:PORT of a Ray cluster's head, such as 10.0.0.1:6379, or auto"
        )
    try:
        socket.create_connection((host, int(port)), _ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"the Ray cluster at {address} does not answer ({error}): see that ray start --head ran there, "
            "or leave --address out to start one here"
        ) from error


def _say_nothing(data: Mapping[str, Any], ignore_prefix: bool = False) -> None:
    """In place of what prints a page about every worker that died, on the standard output that belongs to --json.

    What matters of it is in the exception that comes with it. Ray has no setting for this.
    """


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
