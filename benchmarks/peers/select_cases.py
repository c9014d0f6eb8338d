"""Inputs on which block scores and top-k selections have gone wrong, and what is wrong of the lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from m3gen.ops import index_inputs
from m3gen.ops.topk_inputs import in_order
from m3gen.spec import Problem, dtype
from m3gen.targets import default_device

PAGE, TOPK, DIM = 128, 16, 128
NAN, INF = float("nan"), float("inf")

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SelectCase:
    """Arguments of m3gen's scorer but for its scores, the same lengths served under each of `max_seq_lens`, the
    float64 scores [heads, rows, blocks], and what stands in the buffer of lists before."""

    name: str
    right: str
    problem: Problem
    arguments: Arguments
    max_seq_lens: tuple[int, ...]
    scores: torch.Tensor
    lists: torch.Tensor

    def buffer(self) -> torch.Tensor:
        """int32 [heads, rows, topk]: a fresh copy of `lists`, in the strides of it."""
        made = torch.empty_strided(self.lists.shape, self.lists.stride(), dtype=torch.int32)
        return made.copy_(self.lists)


def cases() -> Iterator[SelectCase]:
    """Of bf16, one head and one local block where nothing else is said; NaN wherever no row may look."""
    ramp = [float(block % 7 * 16 + block) for block in range(20)]
    yield make("lengths 0, 1, 127, 128, 129, 2049, 2500", "the best 16", [0, 1, 127, 128, 129, 2049, 2500])
    yield make("query_len 3, seq_len 1", "rows 0 and 1 empty", [1, 131], query_len=3)
    yield make("2 heads, 2 speculative rows", "the best 16 of each", [129, 2500], heads=2, query_len=2)
    yield make("forced: first block and last two", "both kinds in", [2560, 100], init_blocks=1, local_blocks=2)
    yield make("fp8 keys and queries", "the best 16", [129, 2500], of="e4m3fn")
    yield make("NaN in page tails and unused pages", "never seen", [1, 130, 2433])
    yield make("all scores equal, max_seq_len 2560 and 131072", "one list for both", [2560], scores=[1.0] * 20)
    yield make("scores of +0 and -0", "one list for both", [2560], scores=[0.0, -0.0] * 10)
    yield make("NaN score among 10 blocks", "all 10 blocks", [1280], scores=[*ramp[:4], NAN, *ramp[5:10]])
    yield make("NaN score among 20 blocks", "16 numbers", [2560], scores=[*ramp[:4], NAN, *ramp[5:]])
    yield make("-inf score among 20 blocks", "the best 16", [2560], scores=[*ramp[:4], -INF, *ramp[5:]])
    yield make("-inf score among 10 blocks", "all 10 blocks", [1280], scores=[*ramp[:4], -INF, *ramp[5:10]])
    yield make("+inf score among 20 blocks", "the best 16", [2560], scores=[*ramp[:4], INF, *ramp[5:]])
    yield make("stale ids in the buffer, 3 blocks", "-1 after the third", [300, 0], stale=True)
    yield make(
        "lists token-major, as many rows as heads", "by their strides", [300, 2500], heads=2, token_major=True
    )
    yield make("page offset past 2^31", "the best 16", [300], far=True)


def fault(case: SelectCase, found: Sequence[torch.Tensor]) -> str:
    """What is wrong of the lists made under each of `max_seq_lens`, or nothing. Any order will do, and among
    blocks of one score any choice, as long as it is one."""
    for lists, max_seq_len in zip(found, case.max_seq_lens, strict=True):
        for head, row in torch.cartesian_prod(torch.arange(lists.shape[0]), torch.arange(lists.shape[1])).tolist():
            if wrong := _wrong_list(case, lists[head, row].tolist(), head, row):
                at = f" at max_seq_len {max_seq_len}" if max_seq_len != case.max_seq_lens[0] else ""
                return f"row {row}: {wrong}{at}"
    for lists, max_seq_len in zip(found, case.max_seq_lens, strict=True):
        if other := sorted(set(found[0].flatten().tolist()) ^ set(lists.flatten().tolist())):
            return f"another choice at max_seq_len {max_seq_len} (blocks {_listed(other)})"
    return ""


def _wrong_list(case: SelectCase, listed: list[int], head: int, row: int) -> str:
    scores = case.scores[head, row]
    blocks = _visible(case, row)
    right = in_order(scores[:blocks].tolist())[:TOPK]
    chosen, rest = listed[: len(right)], listed[len(right) :]
    if any(block != -1 for block in rest):
        return f"ids {_listed(rest)} after the list"
    if lost := [block for block in chosen if not 0 <= block < blocks]:
        return f"{lost[0]} in place {chosen.index(lost[0])}, without block {_listed(set(right) - set(chosen))}"
    if len(set(chosen)) < len(chosen):
        return "a block twice"
    if sorted(_worth(scores[block]) for block in chosen) != sorted(_worth(scores[block]) for block in right):
        extra, lost = set(chosen) - set(right), set(right) - set(chosen)
        return f"block {_listed(extra)} in place of {_listed(lost)}"
    return ""


def _worth(score: torch.Tensor) -> tuple[bool, float]:
    return (False, 0.0) if score.isnan() else (True, float(score))


def _listed(blocks: Any) -> str:
    return ", ".join(map(str, sorted(blocks)))


def _visible(case: SelectCase, row: int) -> int:
    request, token = divmod(row, case.problem.query_len)
    kv_len = int(case.arguments["seq_lens"][request]) - case.problem.query_len + token + 1
    return -(-max(kv_len, 0) // PAGE)


def make(
    name: str,
    right: str,
    seq_lens: list[int],
    *,
    heads: int = 1,
    query_len: int = 1,
    of: str = "bf16",
    init_blocks: int = 0,
    local_blocks: int = 1,
    scores: Sequence[float] = (),
    stale: bool = False,
    token_major: bool = False,
    far: bool = False,
) -> SelectCase:
    """With `scores`, every block of every request scores just that."""
    generator = torch.Generator().manual_seed(0)
    device = default_device("sm_90" if of == "e4m3fn" else "gfx942")
    problem = Problem(
        op="index_score",
        arch=device.arch,
        compute_units=device.compute_units,
        q_dtype=of,
        kv_dtype=of,
        group_size=heads,
        query_len=query_len,
        rows=8,
        context=131072,
    )
    element, rows = dtype(of).torch(), len(seq_lens) * query_len
    q = torch.randn((rows, heads, DIM), generator=generator).to(element)
    if scores:
        q = torch.zeros_like(q)
        q[..., 0] = 1.0
    counts = [-(-length // PAGE) for length in seq_lens]
    first = (1 << 31) // (PAGE * DIM) + 1 if far else 1
    table = torch.zeros((len(seq_lens), max(counts)), dtype=torch.int32)
    pages = torch.randperm(sum(counts), generator=generator).int() + first
    cache = torch.empty((first + sum(counts), PAGE, DIM), dtype=element)
    for part in (cache[:1], cache[first:]):
        part.copy_(torch.full((), NAN).to(element))
    for request, (length, count) in enumerate(zip(seq_lens, counts, strict=True)):
        table[request, :count] = pages[sum(counts[:request]) :][:count]
        for block in range(count):
            live = min(PAGE, length - block * PAGE)
            keys = torch.randn((live, DIM), generator=generator)
            if scores:
                keys = torch.zeros(live, DIM)
                keys[:, 0] = scores[block]
            cache[table[request, block], :live] = keys.to(element)
    lists = torch.full((heads, rows, TOPK), -7, dtype=torch.int32)
    if stale:
        lists = torch.arange(TOPK, dtype=torch.int32).expand(heads, rows, TOPK).contiguous()
    if token_major:
        lists = lists.transpose(0, 1).contiguous().transpose(0, 1)
    arguments: Arguments = {
        "q": q,
        "k_cache": cache,
        "block_table": table,
        "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
        "query_len": query_len,
        "init_blocks": init_blocks,
        "local_blocks": local_blocks,
    }
    answer = index_inputs.reference(problem, arguments | {"scores": torch.empty((heads, rows, max(counts)))})
    limits = (2560, 131072) if scores else (max(max(seq_lens), PAGE),)
    return SelectCase(name, right, problem, arguments, limits, answer, lists)
