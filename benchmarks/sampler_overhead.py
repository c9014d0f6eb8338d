"""Milliseconds that a sampler takes for one suggestion, with 500 evaluations known, in a space of 10^5 configs; by the
clock, and of CPU time, which a busy machine does not stretch.

python benchmarks/sampler_overhead.py [SAMPLER ...]
"""

from __future__ import annotations

import math
import sys
import time

from m3gen.search.history import History
from m3gen.search.sampler import make_sampler
from m3gen.space import Choice, Flag, Ordinal, PowerOfTwo, Space

KNOWN, MORE = 500, 200  # by the end evaluations have grown by 1.4: `hybrid` has fitted its scales anew once
TARGET_MS = 20.0


def large_space() -> Space:
    """124 416 configs of ten parameters."""
    return Space(
        [
            PowerOfTwo("tile_m", 16, 128, 64),
            PowerOfTwo("tile_n", 16, 128, 64),
            PowerOfTwo("splits", 1, 128, 4),
            PowerOfTwo("num_warps", 1, 4, 4),
            Ordinal("num_stages", (1, 2, 3), 2),
            Choice("scheme", ("a", "b", "c"), "a"),
            Choice("cache", ("", ".ca", ".cg"), ""),
            Choice("merge", ("kernel", "last", "none"), "last"),
            Flag("masked", True),
            Flag("persistent", False),
        ]
    )


def time_of(space: Space, id: int) -> float:
    places = space.positions[id].astype(float)
    return 10.0 + math.fsum((place - 1.5) ** 2 for place in places) + 3.0 * abs(math.sin(id))


def milliseconds(name: str, space: Space) -> tuple[list[float], list[float]]:
    """Of some suggestions in a row, each evaluated before the next: by the clock, and of CPU. What a session would
    have imported and learnt by then is left out."""
    sampler = make_sampler(name, 0)
    observed = {id: time_of(space, id) for id in make_sampler("random", 1).ask(space, History(), KNOWN)}
    sampler.ask(space, History(observed), 2)
    clock, cpu = [], []
    for _ in range(MORE):
        started, worked = time.perf_counter(), time.process_time()
        (id,) = sampler.ask(space, History(observed), 1)
        clock.append(1e3 * (time.perf_counter() - started))
        cpu.append(1e3 * (time.process_time() - worked))
        observed = {**observed, id: time_of(space, id)}
    return clock, cpu


def main() -> None:
    space = large_space()
    print(f"{len(space)} configs, {KNOWN} evaluations known, {MORE} suggestions each")
    for name in sys.argv[1:] or ("random", "local", "tpe", "hybrid"):
        for unit, taken in zip(("ms", "ms of CPU"), milliseconds(name, space), strict=True):
            print(f"{name:10} {math.fsum(taken) / MORE:8.1f} {unit} a suggestion, at most {max(taken):8.1f}")


if __name__ == "__main__":
    main()
