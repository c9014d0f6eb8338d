"""Runs of samplers and of Kernel Tuner's strategies on recorded spaces, scored; in worker processes if wanted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
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

SEEDS = 5  # of a sibling's best configs


@dataclass(frozen=True, slots=True)
class Run:
    """One search to be made: a sampler by name (`kernel_tuner:NAME`: a strategy of Kernel Tuner) on the space in
    `path`, with the history of the one in `sibling` if any. `repeat` sets the seed."""

    path: Path
    sampler: str
    repeat: int
    budget: int
    sibling: Path | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run, and the seconds of the sampler's own that it took."""

    run: Run
    scored: Scored
    seconds: float


def replay(sampler: Sampler, space: Recorded, budget: int, prior: Prior = NOTHING_KNOWN) -> list[float | None]:
    """The milliseconds of what a sampler asks for, in order, None where it failed, until `budget` or exhaustion."""
    observed: dict[int, float | None] = {}
    while len(observed) < budget:
        ids = sampler.ask(space.space, History(observed, prior=prior), 1)
        if not ids:
            break
        observed.update((id, space.milliseconds[id]) for id in ids)
    return list(observed.values())


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
    # Equal repeats on different spaces must not share their luck: a mean over spaces would hide its spread.
    seed = int(hashlib.sha256(f"{space.name} {run.repeat}".encode()).hexdigest()[:8], 16)
    strategy = run.sampler.removeprefix(kernel_tuner.PREFIX)
    started = time.perf_counter()
    if strategy != run.sampler:
        trace = kernel_tuner.simulate(space, strategy, run.budget, seed)
    else:
        prior = NOTHING_KNOWN if run.sibling is None else _prior(run.sibling)
        trace = replay(make_sampler(run.sampler, seed), space, run.budget, prior)
    return Ran(run, measure.scored(trace), time.perf_counter() - started)


@lru_cache(maxsize=32)
def _known(path: Path, budget: int) -> tuple[Recorded, Yardstick]:
    space = load(path)
    return space, yardstick(space.milliseconds, budget)


load = lru_cache(maxsize=32)(read)


@lru_cache(maxsize=32)
def _prior(path: Path) -> Prior:
    return sibling_prior(load(path))


def sibling_prior(sibling: Recorded) -> Prior:
    """What another device's record tells a search: its best configs as seeds, and all of its times."""
    known = sibling.by_config()
    timed = {config: value for config, value in known.items() if value is not None}
    return Prior(tuple(sorted(timed, key=timed.__getitem__)[:SEEDS]), (known,))
