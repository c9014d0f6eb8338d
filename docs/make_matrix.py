"""Write docs/matrix.md: what the default of every op compiles to, on every architecture and for every dtype.

    python docs/make_matrix.py [--arch gfx942 ...] [--jobs 2] [--to docs/matrix.md]

Facts that the cache ($M3GEN_CACHE) has are taken from there, so a second run compiles nothing. Exit status 1 when a
default does not compile, spills vector registers or uses scratch memory.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from m3gen import ops
from m3gen.cli.options import cpus
from m3gen.cli.work import Candidate, distinct
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.pool import WorkerPool
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.ops.coverage import LOADS, Coverage
from m3gen.report.words import count, dtypes
from m3gen.spec import Problem, Status
from m3gen.targets import ARCHITECTURES, default_device

SHOWN = Coverage(all_dtypes=(4,), usual_dtypes=(), long_queries=(4,), loads=(LOADS[0], LOADS[-1]))
DEADLINE_S = 600.0
COLUMNS = (
    "op",
    "cache",
    "query",
    "rows",
    "launch",
    "kernel",
    "registers",
    "vector spill",
    "scalar spill",
    "scratch",
    "shared",
    "groups/CU",
)
HEAD = """# What the defaults compile to

Made by `python docs/make_matrix.py` with {compiler}. Do not edit.

The default configuration of every op at TP 4, in every dtype of the cache and with every kind of scales (`/token`:
one per token and head; `/unscaled`: none), with query length 4 beside bf16 and scaled fp8. It stands twice where it
depends on the load: one row (one request) with 8,192 tokens, and 256 rows with 131,072.

- *registers*: vector registers of a lane, AMD's accumulation registers included.
- *vector spill*: registers that the compiler put into memory (NVIDIA: instructions that do so). *scratch*: bytes of
  that memory per lane (NVIDIA: local memory, the stack).
- *scalar spill*: scalar registers that AMD's compiler put into lanes of a vector register. That costs instructions
  and some of the registers counted here, and no memory. NVIDIA has none.
- *shared*: bytes of LDS or shared memory of a workgroup. *groups/CU*: workgroups that a compute unit or SM holds.
"""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One default and what became of it."""

    problem: Problem
    result: CompileResult

    @property
    def kernels(self) -> list[KernelFacts]:
        """In launch order."""
        return [self.result.facts[key] for key in self.result.keys[0]] if self.result.keys else []

    @property
    def is_clean(self) -> bool:
        """It compiles, fits the device and keeps everything in registers, scalars in whichever."""
        return self.result.ok and all(one.vector_spills == one.scratch_bytes == 0 for one in self.kernels)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", nargs="*", choices=sorted(ARCHITECTURES), default=list(ARCHITECTURES))
    parser.add_argument("--jobs", type=int, default=cpus())
    parser.add_argument("--to", type=Path, default=Path(__file__).with_name("matrix.md"))
    given = parser.parse_args()
    found = compiled([one for arch in given.arch for one in candidates(arch)], given.jobs)
    given.to.write_text(page(found), encoding="utf-8")
    return 0 if all(one.is_clean for one in found) else 1


def candidates(arch: str) -> list[Candidate]:
    """The defaults that the page shows, ops in order of name."""
    device = default_device(arch)
    problems = SHOWN.problems([ops.get(name) for name in ops.names()], device)
    return distinct(Candidate(one, ops.get(one.op).default(one, device)) for one in problems)


def compiled(waiting: Sequence[Candidate], jobs: int) -> list[Compiled]:
    """Each of them through the compiler, in the order given."""
    found: dict[int, Compiled] = {}
    with WorkerPool(jobs=jobs, deadline_s=DEADLINE_S) as pool:
        tickets = {pool.submit(CompileRequest(one.problem.op, (one.problem,), one.config)): one for one in waiting}
        while len(found) < len(tickets):
            for done in pool.poll():
                died = CompileResult(status=done.status, reason=done.reason)
                result = done.value if done.status is Status.OK else died
                found[done.ticket] = Compiled(tickets[done.ticket].problem, result)
                print(f"{len(found)} of {len(tickets)}", file=sys.stderr)
    return [found[ticket] for ticket in tickets]


def page(found: Sequence[Compiled]) -> str:
    compilers = sorted({one.result.compiler for one in found if one.result.compiler})
    parts = [HEAD.format(compiler=", ".join(compilers) or "no compiler")]
    for arch in dict.fromkeys(one.problem.arch for one in found):
        of_arch = [one for one in found if one.problem.arch == arch]
        parts.append(f"## {arch}\n\n{summary(of_arch)}\n\n{table(of_arch)}\n")
    return "\n".join(parts)


def summary(found: Sequence[Compiled]) -> str:
    """ "82 defaults, 98 launches: no scratch, no vector spill. Scalar spill: in 9 launches, at most 171 registers."."""
    kernels = [kernel for one in found for kernel in one.kernels]
    unclean = sum(not one.is_clean for one in found)
    memory = f"**{unclean} spill to memory or fail**" if unclean else "no scratch, no vector spill"
    spilt = [kernel.scalar_spills for kernel in kernels if kernel.scalar_spills]
    scalar = f"in {count(len(spilt), 'launch', 'launches')}, at most {max(spilt)} registers" if spilt else "none"
    launches = count(len(kernels), "launch", "launches")
    return f"{count(len(found), 'default')}, {launches}: {memory}. Scalar spill: {scalar}."


def table(found: Sequence[Compiled]) -> str:
    rows = [row for one in found for row in _rows(one)]
    lines = [COLUMNS, tuple("---" if name in ("op", "cache", "kernel") else "---:" for name in COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _rows(one: Compiled) -> Iterator[tuple[str, ...]]:
    """A row a launch; of a default that does not compile the reason."""
    p, kernels = one.problem, one.kernels
    first = (p.op, dtypes(p), str(p.query_len), str(p.rows))
    if not one.result.ok:
        yield (*first, "-", f"**{one.result.status}**: {one.result.reason}", *["-"] * 6)
        return
    for number, kernel in enumerate(kernels, 1):
        figures = (
            kernel.registers,
            kernel.vector_spills,
            kernel.scalar_spills,
            kernel.scratch_bytes,
            kernel.shared_bytes,
            kernel.workgroups_per_cu,
        )
        yield (*first, f"{number} of {len(kernels)}", f"`{kernel.kernel}`", *map(str, figures))


if __name__ == "__main__":
    sys.exit(main())
