"""What lookup costs: loading and freezing every op of an architecture, and one call of a frozen dispatch.

    python benchmarks/lookup.py [--arch gfx942] [--release | --home DIR]

By default on tables made for the purpose: every op, the shards TP 1, 2, 4 and 8, bf16 and fp8, 1 to 512 rows, every
context that the op tells apart, each with one of a few legal configurations. `--release` takes those that ship,
`--home` those of DIR/tuning_db, with modules in DIR/generated, as if they shipped. Times are of the processor and,
after the slash, of the wall.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from m3gen import ops
from m3gen.codegen.generate import generate, legal_config
from m3gen.codegen.render import render, template_shas
from m3gen.compiler.fingerprint import fingerprint
from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3, ROW_BUCKETS, Problem
from m3gen.tables.assemble import Parts, assemble
from m3gen.tables.files import replace_text
from m3gen.tables.manifest import write_manifest
from m3gen.tables.table import Point, PointStatus, config_id
from m3gen.tables.text import dumps
from m3gen.targets import Device, default_device

RANKS = (1, 2, 4, 8)
CONFIGS = 4  # of each shape, by turns

MEASURE = """
import sys, time
from pathlib import Path
from m3gen import runtime
from m3gen.runtime import sources
from m3gen.runtime.modules import Modules
from m3gen.spec import Problem

arch, home, problems, rounds = sys.argv[1], sys.argv[2], eval(sys.stdin.read()), 200_000
if home:  # as those that ship
    modules = Modules.in_folder(Path(home) / "generated" / arch)
    sources.files = lambda package: Path(home) / "tuning_db"
    Modules.in_package = classmethod(lambda cls, name: modules)

def spent(work):
    began = time.process_time(), time.perf_counter()
    done = work()
    return done, ((time.process_time() - began[0]) * 1e3, (time.perf_counter() - began[1]) * 1e3)

def said(times):
    return " / ".join(f"{time:.1f}" for time in times)

def freeze(kernels):
    return [kernels[problem["op"]].bind(Problem(**problem), 512) for problem in problems if problem["op"] in kernels]

before = set(sys.modules)
kernels, loading = spent(lambda: runtime.load(arch))
frozen, freezing = spent(lambda: freeze(kernels))
files = [getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before]
imported = sum("/generated/" in file and not file.endswith("__init__.py") for file in files)
_, again = spent(lambda: freeze(runtime.load(arch)))
points = sum(len(shelf.table.points) for one in kernels.values() for shelf in one._shelves)
print(f"{len(kernels)} ops, {points} rows: load {said(loading)} ms")
print(f"{len(frozen)} shapes frozen, {imported} modules imported: {said(freezing)} ms")
print(f"load and freeze again, the modules imported: {said(again)} ms")

dispatch = frozen[0]
dispatch._launchers = [lambda **arguments: None] * 513
def calls(q, k):
    for _ in range(rounds):
        dispatch(17, q=q, k=k)
def bare(q, k):
    launch = dispatch._launchers[17]
    for _ in range(rounds):
        launch(q=q, k=k)
def fastest(work):
    runs = [spent(lambda: work(1, 2))[1] for _ in range(7)]
    return " / ".join(f"{min(times) * 1e3 / rounds:.3f}" for times in zip(*runs))
print(f"a call {fastest(calls)} us, of which its launcher, which does nothing, {fastest(bare)} us")
"""


def shapes(device: Device, name: str) -> list[Problem]:
    """An op on every shard in both dtypes of the cache, at the smallest load."""
    found: dict[Problem, None] = {}
    for ranks in RANKS:
        for dtype in ("bf16", device.architecture.fp8):
            cache = ops.Cache(dtype, "none" if dtype == "bf16" else "scalar")
            if problem := ops.get(name).problem(device, MINIMAX_M3.shard(ranks), cache, 1):
                found[problem] = None
    return list(found)


def make_table(device: Device, name: str, home: Path) -> None:
    """A table of every load, and its modules. Its times mean nothing."""
    op, parts = ops.get(name), Parts()
    for shape in shapes(device, name):
        default = op.default(shape, device)
        space = op.space(shape, device)
        configs = [default, *(space.config(i) for i in range(0, len(space), max(1, len(space) // CONFIGS)))][
            :CONFIGS
        ]
        loads = {op.canonical(shape.with_load(r, c)) for r in ROW_BUCKETS for c in CONTEXT_BUCKETS}
        for number, problem in enumerate(sorted(loads)):
            config = configs[number % len(configs)]
            try:
                legal_config(op, problem, config)
            except ValueError:
                config = default
            parts.configs[config_id(config)] = config.to_dict()
            longest = op.canonical(problem.with_load(problem.rows, CONTEXT_BUCKETS[-1]))
            parts.points[problem] = Point(
                problem=problem,
                config=config_id(config),
                us=1.0,
                low_us=1.0,
                high_us=1.0,
                baseline_us=None,
                status=PointStatus.PREDICTED,
                judge="none-1",
                gate="machine-code",
                limit="",
                registers=0,
                compiler=fingerprint(),
                source_sha=render(op, problem, config).sha,
                evidence=hashlib.sha256(problem.canonical_json().encode()).hexdigest(),
                open_ended=("context",) if longest == problem else (),
            )
    table = assemble(op, device.arch, parts, templates=template_shas(op.template), date="2026-01-01")
    replace_text(home / "tuning_db" / device.arch / f"{name}.json", dumps(table))
    generate(table, home / "generated")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--release", action="store_true", help="the tables that ship, instead of full ones")
    parser.add_argument("--home", type=Path, help="the tables of this folder")
    options = parser.parse_args()
    device = default_device(options.arch)
    # What one rank at TP 4 may freeze: every op in both dtypes, at the longest context.
    asked = [
        problem.with_load(1, CONTEXT_BUCKETS[-1]).to_dict()
        for name in ops.names()
        for problem in shapes(device, name)
        if (problem.group_size * problem.kv_heads) in (16, 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or ("" if options.release else folder)
        if home == folder:
            for name in ops.names():
                make_table(device, name, Path(folder))
            write_manifest(Path(folder) / "tuning_db")
        command = [sys.executable, "-c", MEASURE, device.arch, str(home)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # an installed package has its bytecode
        for title in ("the first time (modules are compiled to bytecode)", "again"):
            print(title)
            sys.stdout.flush()
            subprocess.run(command, input=repr(asked), text=True, check=True, env=environment)


if __name__ == "__main__":
    main()
