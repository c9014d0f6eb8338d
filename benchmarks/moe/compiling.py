"""Configurations through m3gen's compiler room: a pool of workers, a deadline, and facts kept by content."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from m3gen.codegen.module import load_module
from m3gen.compiler.cache import FactsCache
from m3gen.compiler.compile import CompileError, compile_prepared, prepare, resource_fault
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.pool import WorkerPool
from m3gen.spec import Status
from m3gen.targets import architecture

from .campaign import Campaign
from .config import MoeConfig
from .kernel import launch, source

DEADLINE_S = 240.0


@dataclass(frozen=True, slots=True)
class Order:
    """One kernel to compile, and where to keep its facts."""

    wheel: Path
    campaign: Campaign
    config: MoeConfig
    cache: Path


@dataclass(frozen=True, slots=True)
class Compiled:
    """`facts` are None where the kernel does not compile; where it cannot be launched `status` is RESOURCES."""

    config: MoeConfig
    status: Status
    reason: str
    facts: KernelFacts | None


def compile_one(order: Order) -> Compiled:
    """The pool's handler."""
    target = architecture(order.campaign.arch)
    cache = FactsCache.open(order.cache / "facts")
    try:
        module = load_module(source(order.wheel))
        ready = prepare(module, launch(order.campaign, order.config), target)
        if (facts := cache.get(ready.key)) is None:
            compiled = compile_prepared(ready)
            facts = compiled.facts
            cache.put(ready.key, facts, compiled.assembly)
    except CompileError as error:
        return Compiled(order.config, Status.COMPILE, str(error), None)
    fault = resource_fault(facts, target)
    return Compiled(order.config, Status.RESOURCES if fault else Status.OK, fault, facts)


def compile_all(
    wheel: Path, campaign: Campaign, configs: Sequence[MoeConfig], cache: Path, jobs: int, seconds: float
) -> Iterator[Compiled]:
    """In order of completion, until `seconds` are over; what is in hand then is not waited for."""
    until = time.monotonic() + seconds
    handler = f"{compile_one.__module__}:{compile_one.__name__}"
    with WorkerPool(handler, jobs=jobs, deadline_s=DEADLINE_S, env=_path(), payloads_per_child=60) as pool:
        tickets = {pool.submit(Order(wheel, campaign, config, cache)): config for config in configs}
        while pool.pending and (left := until - time.monotonic()) > 0:
            for done in pool.poll(left):
                died = Compiled(tickets[done.ticket], done.status, done.reason, None)
                yield done.value if done.status is Status.OK else died


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
