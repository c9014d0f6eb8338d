"""How many kernels run right as machine code: every op's default and the shipped winners, on the ops' awkward inputs.

    python benchmarks/machine_code.py gfx942 gfx950

Of the defaults: TP 4 and 16, query length 1 and 4, bf16 and fp8 with one scale and with one per token and head, one
row and 256, 8,192 tokens and 131,072, where the default differs. One seed, each case launched twice with its waves in
another order. The cheapest problems come first; a line for each, and the count so far at its end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import m3gen
from m3gen import ops
from m3gen.cli import defaults, problems, work
from m3gen.cli.work import Candidate
from m3gen.evaluate.place import MACHINE_CODE
from m3gen.ops.coverage import LOADS, Coverage
from m3gen.report import verdicts
from m3gen.space import Config
from m3gen.spec import Problem
from m3gen.tables.load import load

COVERAGE = Coverage(all_dtypes=(4, 16), usual_dtypes=(), long_queries=(4, 16), loads=LOADS)
TABLES = Path(m3gen.__file__).parents[1] / "tuning_db"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", nargs="+", help="gfx942 or gfx950")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    waiting = [one for arch in options.arch for one in (*winners(arch), *field(arch))]
    waiting.sort(key=defaults.duration)
    print(f"{len(waiting)} kernels", flush=True)
    kernels = cases = failed = 0
    for one, verdict in work.verify(waiting, options.jobs, (0,), MACHINE_CODE):
        kernels, cases, failed = kernels + 1, cases + len(verdict.cases), failed + (not verdict.ok)
        found = verdicts.outcome_line(verdict)
        print(f"{verdicts.heading(one.problem)}: {found}", flush=True)
        print(f"    {kernels} of {len(waiting)} kernels, {cases} cases, {failed} kernels failed", flush=True)
    raise SystemExit(failed > 0)


def field(arch: str) -> Iterator[Candidate]:
    """The default of each problem, once for each kernel."""
    device = problems.find_device(arch, None)
    wanted = (one for one in COVERAGE.problems(problems.find_ops(["all"]), device) if _wanted(one))
    yield from work.distinct(Candidate(one, ops.get(one.op).default(one, device)) for one in wanted)


def _wanted(problem: Problem) -> bool:
    if problem.kv_dtype.startswith("e4m3"):
        return problem.kv_scale in ("scalar", "per_token_head")
    return problem.kv_dtype == "bf16"


def winners(arch: str) -> Iterator[Candidate]:
    """Every shipped winner, once for each kernel."""
    for path in sorted((TABLES / arch).glob("*.json")):
        table = load(path)
        yield from work.distinct(
            Candidate(point.problem, Config(table.configs[point.config])) for point in table.points
        )


if __name__ == "__main__":
    main()
