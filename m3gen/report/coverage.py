"""Who answers the loads of MiniMax-M3: op by shard, the rungs of the runtime's own ladder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from m3gen import ops
from m3gen.report import layout
from m3gen.spec import MINIMAX_M3, ROW_BUCKETS, Problem
from m3gen.targets import Device

if TYPE_CHECKING:
    from m3gen.runtime import KernelSet

RANKS = (1, 2, 4, 8)
NONE = "none"  # no rung answers


@dataclass(frozen=True, slots=True)
class Cell:
    """One load of one shard, and the rung that answers it ("none": nothing does)."""

    op: str
    ranks: int
    problem: Problem
    rung: str


def cells(
    kernels: KernelSet,
    device: Device,
    names: Iterable[str],
    contexts: Sequence[int],
    rows: Sequence[int] = ROW_BUCKETS,
) -> list[Cell]:
    """Every op on every shard in both dtypes of the cache, one query token a request."""
    found = []
    for name in names:
        op = ops.get(name)
        for ranks in RANKS:
            loads: dict[Problem, None] = {}  # an op that knows no KV cache has one problem for both dtypes
            for dtype in ("bf16", device.architecture.fp8):
                cache = ops.Cache(dtype, "none" if dtype == "bf16" else "scalar")
                base = op.problem(device, MINIMAX_M3.shard(ranks), cache, 1)
                if base is None:
                    continue
                loads |= dict.fromkeys(op.canonical(base.with_load(r, c)) for c in contexts for r in rows)
            found += [Cell(name, ranks, problem, _rung(kernels, problem)) for problem in loads]
    return found


def table(found: Sequence[Cell]) -> Table:
    """A line an op and dtype, a column a shard: how many loads the tables' rows answer, of how many."""
    rows = []
    for (op, kv), of_line in _grouped(found).items():
        shards = (_fraction([cell for cell in of_line if cell.ranks == ranks]) for ranks in RANKS)
        rungs = ", ".join(f"{rung} {count}" for rung, count in by_rung(of_line).items())
        rows.append((op, kv, *shards, rungs))
    return layout.table(
        ("op", "KV", *(f">TP {ranks}" for ranks in RANKS), "answered by"), rows, fold=("answered by",)
    )


def by_rung(found: Iterable[Cell]) -> dict[str, int]:
    """Loads by the rung that answers them."""
    return dict(sorted(Counter(cell.rung for cell in found).items()))


def answered(cell: Cell) -> bool:
    """Whether a row of a table answers, as it stands."""
    return cell.rung not in (NONE, "heuristic", "demoted", "built")


def _rung(kernels: KernelSet, problem: Problem) -> str:
    if problem.op not in kernels:
        return NONE
    trace = kernels[problem.op].trace(problem)
    return NONE if trace.answer is None else str(trace.answer.rung)


def _grouped(found: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        groups.setdefault((cell.op, cell.problem.kv_dtype), []).append(cell)
    return groups


def _fraction(of: Sequence[Cell]) -> str:
    return f"{sum(map(answered, of))}/{len(of)}" if of else "-"
