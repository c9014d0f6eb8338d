"""Runs of samplers and of Kernel Tuner's strategies on recorded spaces, scored; in worker processes if wanted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from m3gen.replay import kernel_tuner
from m3gen.replay.files import read
from m3gen.replay.recorded import Recorded
from m3gen.replay.score import Scored, Yardstick, yardstick
from m3gen.search.history import History
from m3gen.search.prior import NOTHING_KNOWN, Prior
from m3gen.search.sampler import Sampler, make_sampler
from m3gen.space import Config

SEEDS = 5  # of a sibling's best configs


@dataclass(frozen=True, slots=True)
class Run:
    """One search to be made: a sampler by name (`kernel_tuner:NAME`: a strategy of Kernel Tuner) on the space in
    `path`, with what is known of the one in `sibling` if any: its whole record, or what a search of
    `sibling_budget` evaluations by the same sampler saw of it. `repeat` sets the seeds."""

    path: Path
    sampler: str
    repeat: int
    budget: int
    sibling: Path | None = None
    sibling_budget: int | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run, and the seconds of the sampler's own that it took."""

    run: Run
    scored: Scored
    seconds: float


def replay(sampler: Sampler, space: Recorded, budget: int, prior: Prior = NOTHING_KNOWN) -> list[float | None]:
    """The milliseconds of what a sampler asks for, in order, None where it failed, until `budget` or exhaustion."""
    return list(_observed(sampler, space, budget, prior).values())


def _observed(sampler: Sampler, space: Recorded, budget: int, prior: Prior) -> dict[int, float | None]:
    observed: dict[int, float | None] = {}
    while len(observed) < budget:
        ids = sampler.ask(space.space, History(observed, prior=prior), 1)
        if not ids:
            break
        observed.update((id, space.milliseconds[id]) for id in ids)
    return observed


def run_all(runs: Sequence[Run], jobs: int) -> Iterator[Ran]:
    """The runs' outcomes, in their order whatever `jobs` is; each in a process of a pool if it is over one."""
    if jobs == 1:
        yield from map(run_one, runs)
        return
    import multiprocessing

    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run_one, runs)


def run_one(run: Run) -> Ran:
    space, measure = _known(run.path, run.budget)
    seed = _seed(space, run.repeat)
    strategy = run.sampler.removeprefix(kernel_tuner.PREFIX)
    prior = _prior(run)
    started = time.perf_counter()
    if strategy != run.sampler:
        trace = kernel_tuner.simulate(space, strategy, run.budget, seed)
    else:
        trace = replay(make_sampler(run.sampler, seed), space, run.budget, prior)
    return Ran(run, measure.scored(trace), time.perf_counter() - started)


@lru_cache(maxsize=32)
def _known(path: Path, budget: int) -> tuple[Recorded, Yardstick]:
    space = load(path)
    return space, yardstick(space.milliseconds, budget)


load = lru_cache(maxsize=32)(read)


def _seed(space: Recorded, repeat: int) -> int:
    """Equal repeats on different spaces must not share their luck: a mean over spaces would hide its spread."""
    return int(hashlib.sha256(f"{space.name} {repeat}".encode()).hexdigest()[:8], 16)


def _prior(run: Run) -> Prior:
    if run.sibling is None:
        return NOTHING_KNOWN
    if run.sibling_budget is None:
        return _recorded_prior(run.sibling)
    sibling = load(run.sibling)
    sampler = make_sampler(run.sampler, _seed(sibling, run.repeat))
    return sibling_prior(searched(sampler, sibling, run.sibling_budget))


@lru_cache(maxsize=32)
def _recorded_prior(path: Path) -> Prior:
    return sibling_prior(load(path).by_config())


def searched(sampler: Sampler, space: Recorded, budget: int) -> dict[Config, float | None]:
    """What a search that knew nothing before saw of a space: milliseconds by config, None where it failed."""
    observed = _observed(sampler, space, budget, NOTHING_KNOWN)
    return {space.space.config(id): value for id, value in observed.items()}


def sibling_prior(known: Mapping[Config, float | None]) -> Prior:
    """What another device's times tell a search: its best configs as seeds, and all of them."""
    timed = {config: value for config, value in known.items() if value is not None}
    return Prior(tuple(sorted(timed, key=timed.__getitem__)[:SEEDS]), (known,))
