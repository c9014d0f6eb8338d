"""Is `index_topk` exact? Random rows of hostile scores, each list against a stable sort, in every structure.

    python benchmarks/topk_exact.py [--cases 10000] [--seed 0] [--jobs 2]

A case is one row: ties, NaN, infinities, zeros of both signs, all equal; block counts 0 to 20, around the list's
length, around every edge of a tile and of a split. Every structure runs all the cases. Prints a table, seconds of
all processes together; exit status 1 when a list differs in any place.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.interpreter import interpreting, overflow_unchecked
from m3gen.ops import topk_inputs
from m3gen.spec import Problem
from m3gen.targets import default_device

TILE = 64
STRUCTURES: tuple[dict[str, str | int], ...] = (
    {"select": "insert", "splits": 1},
    {"select": "insert", "splits": 4, "merge": "kernel"},
    {"select": "insert", "splits": 4, "merge": "last"},
    {"select": "sort", "splits": 1},
    {"select": "sort", "splits": 4, "merge": "kernel"},
    {"select": "sort", "splits": 4, "merge": "last"},
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    wrong = 0
    print(f"{'structure':40} {'cases':>6} {'differ':>6} {'seconds':>8}", flush=True)
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as processes:
        for values in STRUCTURES:
            sizes = tuple(batches(given.cases))
            seeds = range(given.seed, given.seed + len(sizes))
            found = list(processes.map(timed, [values] * len(sizes), sizes, seeds))
            differ, seconds = (sum(column) for column in zip(*found, strict=True))
            print(
                f"{' '.join(map(str, values.values())):40} {given.cases:6} {differ:6} {seconds:8.1f}", flush=True
            )
            wrong += differ
    return 1 if wrong else 0


def timed(values: dict[str, str | int], rows: int, seed: int) -> tuple[int, float]:
    """`count_wrong`, and its seconds."""
    started = time.perf_counter()
    return count_wrong(values, rows, seed), time.perf_counter() - started


def batches(cases: int, rows: int = 500) -> Iterator[int]:
    """Rows of each launch."""
    while cases > 0:
        yield min(rows, cases)
        cases -= rows


def count_wrong(values: dict[str, str | int], rows: int, seed: int) -> int:
    """Rows whose lists differ from the oracle's, of one launch over `rows` random rows."""
    op, device = ops.get("index_topk"), default_device("gfx942")
    problem = Problem(
        op=op.name,
        arch=device.arch,
        compute_units=device.compute_units,
        q_dtype="fp32",
        kv_dtype="fp32",
        group_size=1,
    )
    space = op.space(problem, device)
    defaults = {p.name: p.default for p in space.parameters}
    config = space.canonical({**defaults, "tile": TILE, "num_warps": 1, **values})
    generator = torch.Generator().manual_seed(seed)
    counts = block_counts(rows, problem.topk, int(config["splits"]), generator)
    scores = torch.full((1, rows, int(counts.max()) + 1), float("inf"))  # what no row sees would win
    for row, count in enumerate(counts.tolist()):
        scores[0, row, :count] = topk_inputs.hostile_scores(count, seed + row, generator)
    ids = torch.full((1, rows, problem.topk), -7, dtype=torch.int32)
    flags = op.flags(problem, config)
    with interpreting(), overflow_unchecked():
        load_module(render(op, problem, config)).index_topk(
            scores,
            (
                counts * problem.page_size
                - torch.randint(0, 128, (rows,), generator=generator).int() * (counts > 0)
            ).int(),
            ids,
            **topk_inputs.workspace(flags, 1, rows, problem.topk, "cpu"),
        )
    return int((ids[0] != oracle(scores[0], counts, problem.topk)).any(1).sum())


def block_counts(rows: int, topk: int, splits: int, generator: torch.Generator) -> torch.Tensor:
    """Mostly the counts where something changes, some of any size."""
    edges = [edge + d for edge in (topk, TILE, 2 * TILE, splits * TILE, splits * TILE + topk) for d in (-1, 0, 1)]
    likely = torch.tensor([*range(21), *edges])
    pick = torch.randint(0, len(likely), (rows,), generator=generator)
    anywhere = torch.randint(0, 3 * TILE, (rows,), generator=generator)
    return torch.where(torch.rand(rows, generator=generator) < 0.8, likely[pick], anywhere)


def oracle(scores: torch.Tensor, counts: torch.Tensor, topk: int) -> torch.Tensor:
    """int32 [rows, topk] by two stable sorts: by score, then scores before NaN before what is not there."""
    block = torch.arange(scores.shape[1])
    seen = block < counts[:, None]
    kind = torch.where(seen, scores.isnan().int(), 2)
    value = torch.where(kind == 0, scores, 0.0)
    by_score = value.sort(dim=1, descending=True, stable=True).indices
    by_kind = kind.gather(1, by_score).sort(dim=1, stable=True).indices
    order = by_score.gather(1, by_kind)
    padded = torch.nn.functional.pad(order, (0, max(0, topk - order.shape[1])))[:, :topk]
    return torch.where(torch.arange(topk) < counts[:, None], padded, -1).int()


if __name__ == "__main__":
    sys.exit(main())
