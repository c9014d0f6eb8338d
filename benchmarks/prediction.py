"""CPU milliseconds of one prediction, once the machine code is there.

python benchmarks/prediction.py [--repeats 5]

"analytic" is `predict` on facts at hand, the bar 50 ms. "simulated" is what AMD has besides, in a worker and once for
each kernel: run the machine code on a small load, simulate its waves; the bar is 2 s. Medians of CPU time, after one
call that imports and decodes. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from m3gen import ops
from m3gen.cli.options import cpus
from m3gen.compiler.candidate import compile_candidate
from m3gen.compiler.request import CompileRequest
from m3gen.evaluate.candidate import observed
from m3gen.evaluate.predict import predict
from m3gen.ops.base import Cache
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3
from m3gen.targets import Device, default_device

ARCHS = ("gfx942", "gfx950")
OPS = ("sparse_decode", "dense_decode", "index_score")
LOAD = (16, 8192)  # rows, context
SMALL = 16  # tokens of a tile
BARS_MS = {"analytic": 50.0, "simulated": 2000.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    repeats = parser.parse_args().repeats
    print(machine(), flush=True)
    print(f"{'arch':8} {'op':14} {'config':10} {'analytic ms':>12} {'simulated ms':>13}")
    worst = dict.fromkeys(BARS_MS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["M3GEN_CACHE"] = folder
        for arch in ARCHS:
            for name in OPS:
                for label, request in requests(name, default_device(arch)).items():
                    found = measured(request, default_device(arch), repeats)
                    print(
                        f"{arch:8} {name:14} {label:10} {found['analytic']:12.2f} {found['simulated']:13.0f}",
                        flush=True,
                    )
                    worst = {kind: max(worst[kind], found[kind]) for kind in worst}
    for kind, bar in BARS_MS.items():
        print(f"{kind}: {worst[kind]:.1f} ms at most, the bar is {bar:.0f} ms")


def requests(name: str, device: Device) -> dict[str, CompileRequest]:
    """The op's default, and the same in small tiles."""
    op = ops.get(name)
    problem = op.problem(device, MINIMAX_M3.shard(4), Cache("bf16"), 1)
    assert problem is not None
    problem = op.canonical(problem.with_load(*LOAD))
    default = op.default(problem, device)
    configs = {"default": default, "small tile": Config({**default, "tile_n": SMALL})}
    space = op.space(problem, device)
    return {label: CompileRequest(name, (problem,), space.canonical(config)) for label, config in configs.items()}


def measured(request: CompileRequest, device: Device, repeats: int) -> dict[str, float]:
    """Median CPU milliseconds by kind."""
    result = compile_candidate(request)
    assert result.ok, result.reason
    work = ops.get(request.op).work(request.problems[0], request.config)
    facts = [result.facts[key] for key in result.keys[0]]

    def simulated() -> None:
        for folder in ("traces", "dynamics"):
            shutil.rmtree(Path(os.environ["M3GEN_CACHE"]) / folder, ignore_errors=True)
        seen = observed(request, result)
        assert all("dynamics" in one.extra for one in seen.facts.values()), seen.facts

    return {
        "analytic": median(lambda: predict(result.launches[0], facts, work, device), repeats),
        "simulated": median(simulated, repeats),
    }


def median(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return 1e3 * statistics.median(times)


def machine() -> str:
    """What the numbers hold for."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        models = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
        model = next(models, model)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("triton", "torch", "numpy"))
    load = os.getloadavg()[0]
    return f"{model}, {cpus()} CPUs, load {load:.1f} at the start; Python {platform.python_version()}, {versions}"


if __name__ == "__main__":
    main()
