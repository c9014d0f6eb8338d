"""Run tuned `sparse_decode` kernels on this CPU and hold their output against plain torch.

    python examples/one_op.py [TABLES]

TABLES is a folder of tables such as `m3gen tune --out DIR` leaves in DIR/tuning_db; without it the runtime looks
where an engine would: the user's own tables, then those that ship. No GPU is needed: where the architecture's own
is missing, Triton's interpreter runs the kernels. Prints, times and choices of the tables aside:

    sparse_decode for gfx942, run by Triton's interpreter
    bf16: ... table: row for ... rows, context 2048 and above, ... us predicted by predict-amd-...
        kernel ...sparse_decode_...
        worst row: error ... of its RMS; largest error ...; the padding row is zero: True
    e4m3fnuz: ... table: row for ... rows, context 2048 and above, ... us predicted by predict-amd-...
        kernel ...sparse_decode_...
        worst row: error ... of its RMS; largest error ...; the padding row is zero: True
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import torch

from m3gen import runtime
from m3gen.spec import MINIMAX_M3, Problem, dtype
from m3gen.targets import device

SEQ_LENS = (300, 1, 0, 2500)  # tokens in the cache of each request; 0 is a padding row
BOUNDS = {"bf16": 4e-3, "e4m3fnuz": 3e-2}  # of the worst row's RMS error over the RMS of the row itself


def the_problem() -> Problem:
    """One rank's decode step of MiniMax-M3 on MI300X under TP4, as an engine knows it."""
    gpu, shard = device("MI300X"), MINIMAX_M3.shard(4)
    return Problem(
        op="sparse_decode",
        arch=gpu.arch,
        compute_units=gpu.compute_units,
        group_size=shard.group_size,
        kv_heads=shard.kv_heads,
    ).with_load(rows=len(SEQ_LENS), context=max(SEQ_LENS))


def inputs(problem: Problem) -> dict[str, Any]:
    """A paged cache of random keys and values, queries, and for each row its newest block and random others."""
    torch.manual_seed(0)
    rows, page, heads = len(SEQ_LENS), problem.page_size, problem.kv_heads
    blocks = [-(-length // page) for length in SEQ_LENS]
    block_table = torch.zeros(rows, max(blocks), dtype=torch.int32)
    topk_ids = torch.full((heads, rows, problem.topk), -1, dtype=torch.int32)  # -1 selects nothing
    pages = torch.randperm(sum(blocks), dtype=torch.int32)
    for row, count in enumerate(blocks):
        block_table[row, :count] = pages[sum(blocks[:row]) :][:count]
        for head in range(heads if count else 0):
            others = torch.randperm(count - 1)[: problem.topk - 1].tolist()
            topk_ids[head, row, : len(others) + 1] = torch.tensor([count - 1, *others])
    q = torch.randn(rows, problem.q_heads, problem.head_dim).to(dtype(problem.q_dtype).torch())
    cache = torch.randn(2, sum(blocks), heads, page, problem.head_dim).to(dtype(problem.kv_dtype).torch())
    arguments = {
        "q": q,
        "k_cache": cache[0],
        "v_cache": cache[1],
        "topk_ids": topk_ids,
        "block_table": block_table,
        "seq_lens": torch.tensor(SEQ_LENS, dtype=torch.int32),
        "out": torch.full_like(q, float("nan")),
        "softmax_scale": MINIMAX_M3.softmax_scale,
        "query_len": 1,
    }
    if problem.kv_scale == "scalar":
        arguments |= {"k_scale": torch.tensor([0.5]), "v_scale": torch.tensor([0.25])}
    return arguments


def attention(problem: Problem, arguments: dict[str, Any]) -> torch.Tensor:
    """The same in float64: torch's scaled dot-product attention over the tokens that each row selects."""
    out = torch.zeros(arguments["q"].shape, dtype=torch.float64)
    for row, length in enumerate(SEQ_LENS):
        for head in range(problem.kv_heads if length else 0):
            group = slice(head * problem.group_size, (head + 1) * problem.group_size)
            out[row, group] = torch.nn.functional.scaled_dot_product_attention(
                arguments["q"][row, group].double(),
                selected(problem, arguments, "k", row, head),
                selected(problem, arguments, "v", row, head),
                scale=arguments["softmax_scale"],
            )
    return out


def selected(problem: Problem, arguments: dict[str, Any], side: str, row: int, head: int) -> torch.Tensor:
    """Keys or values of the blocks that a row selects, dequantised: float64 [tokens, head_dim]."""
    parts = []
    for block in arguments["topk_ids"][head, row].tolist():
        if block >= 0:
            page = arguments["block_table"][row, block]
            live = min(problem.page_size, SEQ_LENS[row] - block * problem.page_size)
            parts.append(arguments[f"{side}_cache"][page, head, :live].double())
    scale = arguments[f"{side}_scale"].double() if problem.kv_scale == "scalar" else 1.0
    return torch.cat(parts) * scale


def main(tables: str | None = None) -> int:
    kernels = runtime.load("gfx942", tables=tables)
    by = "Triton's interpreter" if kernels.place == "interpreter" else "the GPU"
    print(f"sparse_decode for {kernels.arch}, run by {by}")
    wrong = 0
    for kv_dtype, kv_scale in (("bf16", "none"), ("e4m3fnuz", "scalar")):
        problem = replace(the_problem(), kv_dtype=kv_dtype, kv_scale=kv_scale)
        arguments = inputs(problem)
        kernels.sparse_decode(problem, **arguments)

        selection = kernels.sparse_decode.select(problem)
        expected, found = attention(problem, arguments), arguments["out"].double()
        live = torch.tensor(SEQ_LENS) > 0
        error = (found - expected)[live].flatten(1)
        worst = (error.square().mean(1) / expected[live].flatten(1).square().mean(1)).sqrt().max().item()
        padding_is_zero = bool((found[~live] == 0).all())
        print(f"{kv_dtype}: {selection.reason}")
        print(f"    kernel {selection.module}")
        print(
            f"    worst row: error {worst:.1e} of its RMS; largest error {error.abs().max().item():.1e}; "
            f"the padding row is zero: {padding_is_zero}"
        )
        wrong += not (worst <= BOUNDS[kv_dtype] and padding_is_zero)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
