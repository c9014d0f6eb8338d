"""Candidates compiled and scored per minute, with one worker and with two.

python benchmarks/compile_throughput.py [--candidates 24] [--repeats 2] [--seed 0]

Every run takes the same random candidates of `sparse_decode` on gfx942 through an empty cache: workers compile
them and this process predicts their times, as in a session. Before the clock starts each worker has started,
imported Triton and compiled one small candidate. Runs of one worker and of two take turns, so that a slow spell
of the machine meets both. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata

from m3gen import ops
from m3gen.cli.options import cpus
from m3gen.compiler.pool import Done, WorkerPool
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate.predict import predict
from m3gen.search.random import shuffled
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3, Problem, Status
from m3gen.targets import default_device

DEVICE = default_device("gfx942")
OP = ops.get("sparse_decode")
SHARD = MINIMAX_M3.shard(4)
PROBLEM = Problem(
    op=OP.name,
    arch=DEVICE.arch,
    compute_units=DEVICE.compute_units,
    group_size=SHARD.group_size,
    kv_heads=SHARD.kv_heads,
    rows=16,
    context=2048,
)
WORKERS = (1, 2)
DEADLINE_S = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=24, metavar="N")
    parser.add_argument("--repeats", type=int, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    space = OP.space(PROBLEM, DEVICE)
    chosen = [space.config(id) for id in shuffled(len(space), options.seed)[: options.candidates]]
    print(machine(), flush=True)
    rates: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    ends: Counter[Status] = Counter()
    for _ in range(options.repeats):
        for workers in WORKERS:
            seconds, ended = run(workers, chosen)
            rates[workers].append(60 * len(chosen) / seconds)
            ends += ended
    outcomes = ", ".join(f"{count} {status}" for status, count in ends.most_common())
    print(f"{len(chosen)} candidates of {OP.name} on {DEVICE.name}, seed {options.seed}; outcomes: {outcomes}")
    print("workers   median/min   runs")
    for workers, found in rates.items():
        runs = "  ".join(f"{rate:.1f}" for rate in found)
        print(f"{workers:>7}   {statistics.median(found):>10.1f}   {runs}")
    one, two = (statistics.median(rates[workers]) for workers in WORKERS)
    print(f"two workers are {two / one:.2f} times one")


def run(workers: int, candidates: Sequence[Config]) -> tuple[float, Counter[Status]]:
    """Seconds from the first submission to the last prediction, and how the candidates ended."""
    with tempfile.TemporaryDirectory(prefix="m3gen-benchmark-") as cache:
        environment = {"M3GEN_CACHE": cache}
        with WorkerPool(jobs=workers, deadline_s=DEADLINE_S, env=environment) as pool:
            for config in small(workers, candidates):
                pool.submit(CompileRequest(OP.name, (PROBLEM,), config))
            while pool.pending:
                pool.poll()
            started = time.perf_counter()
            tickets = {pool.submit(CompileRequest(OP.name, (PROBLEM,), config)): config for config in candidates}
            ended: Counter[Status] = Counter()
            while pool.pending:
                ended.update(score(done, tickets[done.ticket]) for done in pool.poll())
            return time.perf_counter() - started, ended


def small(count: int, others: Sequence[Config]) -> list[Config]:
    """One config for each worker, of the smallest tiles and none of the others: nobody finds it in the cache."""
    space = OP.space(PROBLEM, DEVICE)
    unused = (config for config in space if config not in others)
    return [config for config, _ in zip(unused, range(count), strict=False)]


def score(done: Done, config: Config) -> Status:
    """The status of one candidate, predicted if it compiled."""
    if done.status is not Status.OK:
        return done.status
    result: CompileResult = done.value
    if not result.ok:
        return result.status
    facts = [result.facts[key] for key in result.keys[0]]
    return predict(result.launches[0], facts, OP.work(PROBLEM, config), DEVICE).status


def machine() -> str:
    """What the numbers hold for."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        models = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
        model = next(models, model)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("triton", "torch"))
    load = os.getloadavg()[0]
    return f"{model}, {cpus()} CPUs, load {load:.1f} at the start; Python {platform.python_version()}, {versions}"


if __name__ == "__main__":
    main()
