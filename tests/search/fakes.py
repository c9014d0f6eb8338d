"""A bench on which sessions run without workers: pools that answer at once, faults by config."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.rungs import STOPPED
from m3gen.evaluate.verification import Verification
from m3gen.ops.base import Work
from m3gen.search.budget import Budget
from m3gen.search.rooms import Rooms
from m3gen.search.session import Session
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.targets import Device, default_device
from m3gen.testing.fake_facts import fake_facts
from m3gen.testing.fake_op import FakeOp

DEVICE = default_device("gfx942")


def problem(rows: int = 64, **changes: Any) -> Problem:
    return Problem(
        op="fake", arch="gfx942", compute_units=DEVICE.compute_units, rows=rows, context=1024, **changes
    )


def whole_space(bench: Bench) -> list[Config]:
    return list(bench.op.space(problem(), DEVICE))


class Dies(Exception):
    """The worker aborts."""

    status = Status.COMPILE_ABORT


class Hangs(Exception):
    """The worker is killed at its deadline."""

    status = Status.TIMEOUT


class AsksTooMuch(Exception):
    """The code compiles and cannot launch."""


@dataclass(frozen=True)
class Done:
    ticket: int
    value: Any
    status: Status
    reason: str = ""
    seconds: float = 1.0


@dataclass(frozen=True)
class Compiled:
    status: Status
    reason: str = ""
    launches: tuple[tuple[Launch, ...], ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    facts: Mapping[str, KernelFacts] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=lambda: {"fake.py.jinja": "t"})
    compiled: int = 0
    cached: int = 0
    traces: Mapping[str, bytes] = field(default_factory=dict)


class FakePool:
    """Answers one payload per poll: that at `first` of those pending, the one submitted first at 0. Before each answer
    `idle` polls bring nothing."""

    def __init__(
        self, handler: Callable[[Any], Any], poll: Callable[[], None] = lambda: None, first: int = 0, idle: int = 0
    ) -> None:
        self._handler = handler
        self._poll = poll
        self._first = first
        self._idle = self._left = idle
        self._queue: list[tuple[int, Any]] = []
        self._tickets = 0
        self.most_pending = 0
        self.closed = False

    def submit(self, payload: Any) -> int:
        assert not self.closed
        self._tickets += 1
        self._queue.append((self._tickets, payload))
        self.most_pending = max(self.most_pending, len(self._queue))
        return self._tickets

    def poll(self, timeout_s: float) -> list[Done]:
        self._poll()
        if not self._queue or timeout_s == 0:
            return []
        if self._left:
            self._left -= 1
            return []
        self._left = self._idle
        ticket, payload = self._queue.pop(self._first)
        try:
            return [Done(ticket, self._handler(payload), Status.OK)]
        except (Dies, Hangs) as fault:
            return [Done(ticket, None, fault.status, type(fault).__doc__ or "")]

    def close(self) -> None:
        self.closed = True


@dataclass
class Bench:
    """What the fakes do, and what they were asked. `faults` are raised when a config is compiled,
    `gate_faults` when it is verified; `wrong` configs fail the gate, `miscompiled` ones on machine code only;
    `cost` replaces the op's cost, `prior` is its time on the prior rung; a config whose `analytic` time is over
    all its limits is compiled and not run. `least`: the floor of every problem.
    """

    store: Store
    faults: dict[Config, Exception] = field(default_factory=dict)
    gate_faults: dict[Config, Exception] = field(default_factory=dict)
    wrong: set[Config] = field(default_factory=set)
    miscompiled: set[Config] = field(default_factory=set)
    compiler: str = "triton-fake"
    registers: dict[Config, int] = field(default_factory=dict)
    code: Callable[[Config], str] = lambda config: config.sha  # what a config compiles to
    refused: set[Config] = field(default_factory=set)
    cost: Callable[[float], float] = lambda us: us
    prior: Callable[[float], float] = lambda us: 0.0
    analytic: Callable[[float], float] | None = None
    least: float = 0.0
    template: str = "v1"
    judge: str = "predict-fake-1"
    op: FakeOp = field(default_factory=FakeOp)
    now: float = 0.0
    compiles: list[tuple[tuple[Problem, ...], Config]] = field(default_factory=list)
    verifications: list[tuple[Problem, Config, str]] = field(default_factory=list)
    pools: list[FakePool] = field(default_factory=list)
    on_poll: Callable[[], None] = lambda: None
    first: int = 0
    idle: int = 0

    def session(self, *problems: Problem, budget: str = "200", sampler: str = "random", **options: Any) -> Session:
        return Session(
            self.store,
            problems or (problem(),),
            DEVICE,
            sampler=sampler,
            budget=Budget.parse(budget),
            jobs=2,
            cache_dir=Path("unused"),
            rooms=self.rooms(),
            clock=lambda: self.now,
            **options,
        )

    def rooms(self) -> Rooms:
        return Rooms(
            op=lambda name: self.op,
            check=self._check,
            predict=self._predict,
            judge=lambda device: self.judge,
            compiler=lambda: self.compiler,
            source_sha=self._source_sha,
            prior=lambda work, device: self.prior(work[0].flops),
            least=lambda work, device: self.least,
            compile_request=lambda op, problems, config, device, limits: (problems, config, limits),
            verify_request=lambda op, problem, config, on: (problem, config, on),
            compile_pool=lambda: self._pool(self._compile),
            verify_pool=lambda: self._pool(self._verify),
        )

    def _pool(self, handler: Callable[[Any], Any]) -> FakePool:
        self.pools.append(FakePool(handler, lambda: self.on_poll(), self.first, self.idle))
        return self.pools[-1]

    def _source_sha(self, op: Any, problem: Problem, config: Config) -> str:
        return hashlib.sha256(f"{self.template}{config.sha}".encode()).hexdigest()

    def _check(self, problem: Problem, config: Config, device: Device) -> Evaluation | None:
        if config not in self.refused:
            return None
        return Evaluation(stage=Stage.STATIC, status=Status.CONSTRAINT, judge="static-1", code="no", reason="no")

    def _compile(self, request: tuple[tuple[Problem, ...], Config, tuple[float | None, ...]]) -> Compiled:
        problems, config, limits = request
        self.compiles.append((problems, config))
        if fault := self.faults.get(config):
            if isinstance(fault, AsksTooMuch):
                return Compiled(Status.RESOURCES, "163840 bytes of LDS are over 65536")
            raise fault
        works = [self.op.work(p, config) for p in problems]
        keys = tuple(tuple(f"{config.sha}-{i}" for i in range(len(work))) for work in works)
        launch = Launch("fake", (), (), (1, 1, 1))
        extra = {} if self._climbs(works, limits) else {STOPPED: True}
        return Compiled(
            Status.OK,
            launches=tuple((launch,) * len(work) for work in works),
            keys=keys,
            facts={
                key: replace(fake_facts(self.registers.get(config, 64)), code_sha=self.code(config), extra=extra)
                for key in keys[0]
            },
            compiled=len(keys[0]),
        )

    def _climbs(self, works: list[tuple[Work, ...]], limits: tuple[float | None, ...]) -> bool:
        return self.analytic is None or any(
            limit is None or self.analytic(work[0].flops) <= limit
            for work, limit in zip(works, limits, strict=True)
        )

    def _predict(self, launches: Any, facts: Any, work: Any, device: Device) -> Evaluation:
        assert len(launches) == len(facts) == len(work)
        value = self.cost(work[0].flops)
        return Evaluation(
            stage=Stage.PREDICTED,
            status=Status.OK,
            judge=self.judge,
            value_us=value,
            low_us=0.7 * value,
            high_us=1.3 * value,
            limit="memory",
        )

    def _verify(self, request: tuple[Problem, Config, str]) -> Verification:
        problem, config, on = request
        self.verifications.append(request)
        if fault := self.gate_faults.get(config):
            raise fault
        wrong = config in self.wrong or (on == "machine-code" and config in self.miscompiled)
        return Verification(
            status=Status.CORRECTNESS if wrong else Status.OK,
            on=on,
            source_sha=self._source_sha(None, problem, config),
            environment={"compiler": self.compiler},
        )
