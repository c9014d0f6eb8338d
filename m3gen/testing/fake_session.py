"""A session over `WideOp` on the real workers of any executor: no compiler, no time but what a test asks for."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.request import CompileResult
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.predict import Launched
from m3gen.evaluate.verification import Verification
from m3gen.ops.base import Work
from m3gen.search.budget import Budget
from m3gen.search.executor import Executor, Needs
from m3gen.search.rooms import Rooms
from m3gen.search.session import Session
from m3gen.space import Choice, Config, Constraint, Flag, PowerOfTwo, Space
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.targets import Device, default_device
from m3gen.testing.fake_facts import fake_facts
from m3gen.testing.fake_op import FakeOp

DEVICE = default_device("gfx942")
COMPILER = "triton-fake"
JUDGE, GATE = "judge", "gate"


@dataclass(frozen=True, slots=True)
class WideOp(FakeOp):
    """`FakeOp` with 348 configs."""

    def space(self, problem: Problem, device: Device) -> Space:
        return Space(
            [
                PowerOfTwo("tile", 16, 1024, default=64),
                PowerOfTwo("warps", 1, 16, default=4),
                PowerOfTwo("depth", 1, 8, default=1),
                Choice("split", ("none", "kernel"), default="none"),
                Flag("merged", default=False, active=lambda c: c["split"] == "kernel"),
            ],
            [
                Constraint(
                    "narrow", ("tile", "warps"), lambda c: int(c["tile"]) >= 8 * int(c["warps"]), "too narrow"
                )
            ],
        )

    def default(self, problem: Problem, device: Device) -> Config:
        return Config({"tile": 64, "warps": 4, "depth": 1, "split": "none"})

    def best(self, problem: Problem) -> Config:
        return Config({"tile": 512, "warps": 2, "depth": 4, "split": "kernel", "merged": True})

    def cost_us(self, problem: Problem, config: Config) -> float:
        best = self.best(problem)
        steps = sum(
            abs(int(config[name]).bit_length() - int(best[name]).bit_length())
            for name in ("tile", "warps", "depth")
        )
        return 1.0 + steps + (config["split"] != best["split"]) + (config.get("merged", True) is not True)


@dataclass(frozen=True, slots=True)
class Deed:
    """One candidate for a worker: a line of its `name` and config to the file `log`, up to `seconds` of sleep.

    `launches` of each problem; `source` is the candidate's sha.
    """

    name: str
    config: Config
    launches: tuple[int, ...]
    source: str
    log: str
    seconds: float
    on: str = ""


def answer(deed: Deed) -> CompileResult | Verification:
    """The handler of both pools."""
    line = f"{deed.name} {deed.config.sha}{deed.on}\n".encode()
    descriptor = os.open(deed.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line)
    os.close(descriptor)
    time.sleep(deed.seconds * random.random())  # so that answers overtake one another
    if deed.name == GATE:
        environment = {"compiler": COMPILER}
        return Verification(status=Status.OK, on=deed.on, source_sha=deed.source, environment=environment)
    keys = tuple(tuple(f"{deed.config.sha}-{number}" for number in range(count)) for count in deed.launches)
    launch = Launch("fake", (), (), (1, 1, 1))
    return CompileResult(
        status=Status.OK,
        launches=tuple((launch,) * count for count in deed.launches),
        keys=keys,
        facts={
            key: replace(fake_facts(64, compiler=COMPILER), code_sha=deed.config.sha) for key in max(keys, key=len)
        },
        source_sha=deed.source,
        compiler=COMPILER,
        compiled=max(deed.launches),
    )


def problem(**changes: Any) -> Problem:
    return Problem(op="fake", arch="gfx942", compute_units=DEVICE.compute_units, **{"context": 1024, **changes})


def open_session(
    store: Store,
    executor: Executor,
    log: Path,
    *,
    problems: Sequence[Problem] = (),
    evaluations: int = 40,
    seconds: float = 0.0,
    **options: Any,
) -> Session:
    """`options` are those of `Session`."""
    return Session(
        store,
        problems or [problem()],
        DEVICE,
        budget=Budget(evaluations=evaluations),
        jobs=executor.slots,
        cache_dir=Path("unused"),
        rooms=fake_rooms(executor, log, seconds),
        **{"sampler": "random", **options},
    )


def done(log: Path) -> list[str]:
    """The lines that workers wrote, in the order in which they began."""
    return log.read_text().splitlines() if log.exists() else []


def fake_rooms(executor: Executor, log: Path, seconds: float) -> Rooms:
    op = WideOp()

    def source(_op: object, of: Problem, config: Config) -> str:
        return hashlib.sha256(f"v1{config.sha}".encode()).hexdigest()

    def judge(
        _name: str,
        problems: tuple[Problem, ...],
        config: Config,
        _device: Device,
        _limits: tuple[float | None, ...],
    ) -> Deed:
        launches = tuple(len(op.work(one, config)) for one in problems)
        return Deed(JUDGE, config, launches, source(op, problems[0], config), str(log), seconds)

    def gate(_name: str, of: Problem, config: Config, on: str) -> Deed:
        return Deed(GATE, config, (), source(op, of, config), str(log), seconds, on)

    def predict(
        launches: Sequence[Launched], facts: Sequence[KernelFacts], work: Sequence[Work], device: Device
    ) -> Evaluation:
        value = work[0].flops
        return Evaluation(
            stage=Stage.PREDICTED,
            status=Status.OK,
            judge="predict-fake-1",
            value_us=value,
            low_us=0.7 * value,
            high_us=1.3 * value,
            limit="memory",
        )

    def pool() -> Any:
        handler = "m3gen.testing.fake_session:answer"
        return executor.pool(handler, Needs(DEVICE.arch), deadline_s=60.0, env={})

    return Rooms(
        op=lambda name: op,
        check=lambda problem, config, device: None,
        predict=predict,
        judge=lambda device: "predict-fake-1",
        prior=lambda works, device: 0.0,
        least=lambda works, device: 0.0,
        compiler=lambda: COMPILER,
        source_sha=source,
        compile_request=judge,
        verify_request=gate,
        compile_pool=pool,
        verify_pool=pool,
    )
