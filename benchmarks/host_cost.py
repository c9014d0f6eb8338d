"""What a step costs the host: planning it, and getting from a layer to its launches. Launches are stubs.

    python benchmarks/host_cost.py [--vllm PATH]

Prints, for a TP4 rank of MiniMax-M3 at 16 decode requests, the median over many rounds of: `plan` and `begin` of a
step; each op of a layer, beside calling the same stub with the same arguments directly; and, where vLLM's files are
at hand, vLLM's own Python wrappers for the same ops over stubs, in the same run. CPU time of this thread; no
kernel runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from peers import vllm

from m3gen.runtime import LayerCache, Limits, ModelState, NormWeights, Settings, StepInputs
from m3gen.spec import MINIMAX_M3
from m3gen.testing.fake_kernels import FakeKernels

REQUESTS, BLOCKS, PAGES, ROUNDS, CALLS = 16, 64, 32, 50, 1000


def microseconds(call: Callable[[], Any]) -> float:
    """The median round's time of one call."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.thread_time()
        for _ in range(CALLS):
            call()
        rounds.append((time.thread_time() - started) / CALLS * 1e6)
    return statistics.median(rounds)


class Rank:
    """One rank's state over stub kernels, with a step's tensors."""

    def __init__(self) -> None:
        settings = Settings(
            arch="gfx942",
            tensor_parallel=4,
            limits=Limits(max_requests=256, query_lens=(1,), max_model_len=BLOCKS * 128),
        )
        self.state = ModelState(settings, FakeKernels())
        kv = torch.zeros(PAGES, 1, 128, 256, dtype=torch.bfloat16)
        index = torch.zeros(PAGES, 128, 128, dtype=torch.bfloat16)
        first, last = MINIMAX_M3.dense_layers - 1, MINIMAX_M3.layers - 1
        self.state.initialize_kv_cache({first: LayerCache(kv=kv), last: LayerCache(kv=kv, index=index)})
        self.dense, self.sparse = self.state.layer(first), self.state.layer(last)
        self.inputs = StepInputs(
            block_table=torch.zeros(REQUESTS, BLOCKS, dtype=torch.int32),
            seq_lens=torch.ones(REQUESTS, dtype=torch.int32),
            positions=torch.zeros(REQUESTS, dtype=torch.int64),
            slot_mapping=torch.zeros(REQUESTS, dtype=torch.int64),
        )
        self.qkv = torch.zeros(REQUESTS, 2560, dtype=torch.bfloat16)
        self.out = torch.zeros(REQUESTS, 16, 128, dtype=torch.bfloat16)
        weight = torch.zeros(128)
        self.weights = NormWeights(weight, weight, torch.zeros(1, 64), weight, weight)

    def plan(self) -> Any:
        return self.state.plan(REQUESTS, 1, 0, 5000)

    def begin(self) -> None:
        self.state.begin(self.plan(), self.inputs)


def stub(*arguments: Any, **keywords: Any) -> None:
    """What the fake kernels launch: nothing."""


def bare(rank: Rank, op: str) -> Callable[[], Any]:
    """The stub with the arguments of one op's launch, spelled out."""
    plan, cache, inputs = rank.plan(), rank.sparse._cache, rank.inputs
    q, index_q, table, lens = plan.q, plan.index_q, inputs.block_table, inputs.seq_lens
    w, room = rank.weights, torch.zeros(1)
    slots = inputs.slot_mapping
    calls: dict[str, Callable[[], Any]] = {
        "insert": lambda: stub(
            rank.qkv, inputs.positions, w.cos_sin, w.q, w.k, cache.k, cache.v, slots, q,
            index_q_weight=w.index_q, index_k_weight=w.index_k, index_cache=cache.index,
            index_slot_mapping=slots, index_q_out=index_q, eps=1e-6, partial_out=room, check=False,
        ),
        "select": lambda: stub(
            index_q, cache.index, table, lens, plan.scores, plan.ids, query_len=1, init_blocks=0, local_blocks=1,
            partial_out=room, check=False,
        ),
        "attend": lambda: stub(
            q, cache.k, cache.v, plan.ids, table, lens, rank.out, softmax_scale=0.1, query_len=1,
            partial_out=room, check=False,
        ),
    }  # fmt: skip
    return calls[op]


class Stub:
    """A kernel of vLLM's that launches nothing."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return stub


def of_vllm(folder: Path, rank: Rank) -> dict[str, Callable[[], Any]]:
    """vLLM's Python wrappers of the same ops on the same step, every kernel that they launch a stub."""
    theirs = vllm.load(folder)
    for module in [module for name, module in sys.modules.items() if name.startswith("vllm.models.minimax_m3")]:
        for name, value in list(vars(module).items()):
            if hasattr(value, "fn") and hasattr(value, "run"):
                setattr(module, name, Stub())
    plan, cache, inputs = rank.plan(), rank.sparse._cache, rank.inputs
    table, lens, kv = inputs.block_table, inputs.seq_lens, torch.zeros(PAGES, 1, 128, 256, dtype=torch.bfloat16)
    longest, topk, heads = BLOCKS * 128, plan.ids.shape[-1], plan.ids.shape[0]
    return {
        "select": lambda: theirs.select(
            plan.index_q, cache.index, table, lens, longest, topk, 0, 1, heads, 1, 1, out=plan.ids
        ),
        "attend": lambda: theirs.attend(plan.q, kv, plan.ids, table, lens, 1, 0.1, rank.out, 1, None, None),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", type=Path, metavar="PATH", help=vllm.HOW)
    given = parser.parse_args()
    rank = Rank()
    rank.begin()
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}; launches are stubs; microseconds, median")
    print(f"plan a step    {microseconds(rank.plan):6.2f}")
    print(f"plan and begin {microseconds(rank.begin):6.2f}")
    layer, plan = rank.sparse, rank.plan()
    ops: dict[str, Callable[[], Any]] = {
        "insert": partial(layer.insert, rank.qkv, rank.weights),
        "select": partial(layer.select, plan.index_q),
        "attend": partial(layer.attend, plan.q, rank.out),
    }
    for op, call in ops.items():
        through, alone = microseconds(call), microseconds(bare(rank, op))
        print(f"{op:14} {through:6.2f}, the bare stub {alone:.2f}: {through - alone:.2f} over it")
    print(f"a sparse layer {microseconds(partial(layer.run, rank.qkv, rank.weights, rank.out)):6.2f}")
    if given.vllm is not None:
        for op, call in of_vllm(given.vllm, rank).items():
            print(f"vLLM's {op:7} {microseconds(call):6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
