"""A session on real workers, half of whose candidates are more than the compiler or the device can take."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from m3gen.compiler.pool import Done, WorkerPool
from m3gen.compiler.request import CompileRequest
from m3gen.evaluate.evaluation import Evaluation
from m3gen.ops.sparse_decode import SparseDecode
from m3gen.search.budget import Budget
from m3gen.search.executor import LocalExecutor
from m3gen.search.progress import Listener
from m3gen.search.rooms import Rooms, real_rooms
from m3gen.search.session import Session
from m3gen.space import Choice, Config, Parameter, Space
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.targets import Device, default_device

DEVICE = default_device("gfx942")
PROBLEM = Problem(
    op="sparse_decode", arch=DEVICE.arch, compute_units=DEVICE.compute_units, page_size=256, context=4096
)

# The candidates, by tile_n, in whose place the worker hangs or aborts.
HANGS, ABORTS = 32, 128
_PATIENCE_S = 900.0  # for what does not hang, however busy the machine
_LOOK_S = 0.2
# A tile of K and one of V in bf16 are 128 KiB; gfx942 has 64 KiB of LDS for a workgroup.
TOO_LARGE = 256
FAILURES = {Status.COMPILE_ABORT: 1, Status.TIMEOUT: 1, Status.RESOURCES: 1}

OPEN_GATE = "m3gen.testing.faults:wave_through"  # for those who do not want to wait for the real one


@dataclass(frozen=True, slots=True)
class TinyDecode(SparseDecode):
    """`sparse_decode` with five sizes of its tile, and without the rules that keep the largest out."""

    def space(self, problem: Problem, device: Device) -> Space:
        whole = SparseDecode().space(problem, device)
        return Space([one if one.name == "tile_n" else _fixed(one) for one in whole.parameters])

    def default(self, problem: Problem, device: Device) -> Config:
        return self.space(problem, device).config(0)  # the smallest tile

    def field(self, problem: Problem, device: Device) -> Config:
        return self.default(problem, device)


def open_session(
    store: Store,
    cache_dir: Path,
    *,
    deadline_s: float,
    gate: str | None = None,
    listener: Listener | None = None,
) -> Session:
    """A session over all five, on two workers; `gate` is the handler of a gate in place of the real one.

    `deadline_s` is that of the candidate that hangs: a busy machine takes none of the others for it.
    """
    return Session(
        store,
        [PROBLEM],
        DEVICE,
        sampler="exhaustive",
        budget=Budget(evaluations=100),
        jobs=2,
        cache_dir=cache_dir,
        listener=listener,
        rooms=_rooms(cache_dir, deadline_s, gate),
    )


def _rooms(cache_dir: Path, deadline_s: float, gate: str | None) -> Rooms:
    real = real_rooms(
        LocalExecutor(2), DEVICE.arch, deadline_s=deadline_s, verify_deadline_s=600.0, cache_dir=cache_dir
    )
    env = {"M3GEN_CACHE": str(cache_dir)}
    hanging = cache_dir / "hanging"
    deeds: Mapping[int, tuple[str, Any]] = {
        HANGS: ("hang", str(hanging)),
        ABORTS: ("abort", "a candidate that the compiler cannot take"),
    }

    def check(problem: Problem, config: Config, device: Device) -> Evaluation | None:
        return None

    def request(
        op: str, problems: tuple[Problem, ...], config: Config, device: Device, limits_us: tuple[float | None, ...]
    ) -> object:
        return CompileRequest(op, problems, config), deeds.get(int(config["tile_n"]))

    return replace(
        real,
        op=lambda name: TinyDecode(),
        check=check,
        compile_request=request,
        compile_pool=lambda: _PatientPool(hanging, deadline_s, env),
        verify_pool=(lambda: WorkerPool(gate, jobs=1, deadline_s=_PATIENCE_S, env=env))
        if gate
        else real.verify_pool,
    )


class _PatientPool(WorkerPool):
    """Two workers whose deadline falls on the payload that hangs alone, once nothing else is pending beside it.

    Then, because the file `hanging` tells that it was begun, the one payload left is that one.
    """

    def __init__(self, hanging: Path, deadline_s: float, env: Mapping[str, str]) -> None:
        super().__init__("m3gen.testing.faults:compile_or_perform", jobs=2, deadline_s=_PATIENCE_S, env=env)
        self._hanging = hanging
        self._short_s = deadline_s

    def poll(self, timeout_s: float | None = None) -> list[Done]:
        until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            if self.pending == 1 and self._hanging.exists():
                self._bring_forward()
            left = until - time.monotonic()
            done = super().poll(max(0.0, min(left, _LOOK_S)))
            if done or not self.pending or left <= _LOOK_S:
                return done

    def _bring_forward(self) -> None:
        for slot in self._slots:
            if slot.task is not None:
                slot.task.deadline = slot.task.started + self._short_s


def _fixed(parameter: Parameter) -> Parameter:
    """The parameter with its default only."""
    return Choice(parameter.name, (parameter.default,), parameter.default, parameter.active, parameter.doc)
