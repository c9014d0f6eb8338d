"""Inputs of the indexer in one op: queries and keys as they hurt a scorer, lists and tables as a selector writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from m3gen.ops import index_inputs, topk_inputs
from m3gen.ops.base import Case
from m3gen.ops.index_inputs import Data, Layout
from m3gen.spec import Problem

if TYPE_CHECKING:
    import torch

# Scores in fp32 are within 5e-5 of the float64 ones: blocks that are this far apart have one order.
_LEAST_GAP = 1e-3
# A case of more blocks takes the interpreter half a minute.
_MOST_BLOCKS = 300

_PADDED, _TIGHT = Layout(), Layout(padded=False)
_WHOLE = Data(whole=True)
_COPIES = Data(whole=True, copies=True)
_SPOILED = Data(whole=True, spoiled=True)


def example(problem: Problem, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Launcher arguments on the meta device: a cache of over 2 GiB, ids in the order of selection, no page table."""
    import torch

    scored = index_inputs.example(problem)
    heads, rows, _ = scored["scores"].shape
    ids = torch.empty((heads, rows, problem.topk), dtype=torch.int32, device="meta")
    return {**scored, "ids": ids, **workspace(flags, heads, rows, problem.topk, "meta")}


def cases(problem: Problem, flags: Mapping[str, Any], seed: int) -> Iterator[Case]:
    """Whole numbers, whose scores are exact and often equal; at the end random ones of a peer's lengths."""
    page, topk, qlen = problem.page_size, problem.topk, problem.query_len
    make = partial(case, problem, flags, seed)
    lengths = [0, 1, page - 1, page, page + 1, topk * page, topk * page + 1]
    yield make("lengths", lengths, init_blocks=1)
    yield make("page table", [0, page - 1, (topk + 2) * page - 3], ascending=True, pages_per_block=8)
    yield make("copies of keys", [(topk + 4) * page, 3 * page + 5], _TIGHT, local_blocks=0, data=_COPIES)
    # Of the first sequence every block is listed, of the second not.
    spoiled = [(topk - 1) * page, (topk + 2) * page]
    yield make("nan and infinities in the data", spoiled, _TIGHT, local_blocks=0, data=_SPOILED)
    far = Layout(first_page=(1 << 31) // (page * problem.head_dim) + 1)
    yield make("page offset past 2^31", [page + 1], far)
    full = int(flags["TILE"]) or int(flags["SPLITS"]) * topk  # blocks of one step of the selection
    if full < _MOST_BLOCKS:
        yield make("one block too many", [(full + 1) * page - 5], _TIGHT, init_blocks=1, data=_COPIES)
    if qlen > 1:  # rows before the sequence began
        yield make("shorter than the query", [max(1, qlen - 2), page + 1])
    # Of the lengths of vLLM's grid (tests/kernels/attention/test_minimax_m3.py) those that fill a list.
    yield distinct(problem, flags, seed, "peers", [8 * page + 1, 32 * page + 1])


def case(
    problem: Problem,
    flags: Mapping[str, Any],
    seed: int,
    name: str,
    seq_lens: Sequence[int],
    layout: Layout = _PADDED,
    *,
    init_blocks: int = 0,
    local_blocks: int = 1,
    data: Data = _WHOLE,
    ascending: bool = False,
    pages_per_block: int = 0,
) -> Case:
    """One case; with `pages_per_block` a page table is asked for. The score buffer holds NaN."""
    builder = index_inputs.Builder(problem, layout, seed)
    scored = builder.case(name, seq_lens, init_blocks=init_blocks, local_blocks=local_blocks, data=data)
    return _selecting(scored, flags, ascending, pages_per_block)


def distinct(problem: Problem, flags: Mapping[str, Any], seed: int, name: str, seq_lens: Sequence[int]) -> Case:
    """Normally distributed data, drawn again until no two scores that a list depends on are close."""
    builder = index_inputs.Builder(problem, _TIGHT, seed)
    while True:
        scored = builder.case(name, seq_lens, local_blocks=0, grid="peers")
        if least_gap(scored) > _LEAST_GAP:
            return _selecting(scored, flags, ascending=False, pages_per_block=0)


def least_gap(case: Case) -> float:
    """The least distance, in float64, between neighbours among the first topk + 1 blocks of any row."""
    scores = index_inputs.reference(case.problem, case.arguments)
    best = scores.topk(min(case.problem.topk + 1, scores.shape[-1])).values
    gaps = best[..., :-1] - best[..., 1:]
    return float(gaps[gaps.isfinite()].min()) if gaps.isfinite().any() else float("inf")


def _selecting(scored: Case, flags: Mapping[str, Any], ascending: bool, pages_per_block: int) -> Case:
    """A scorer's case with the outputs and the workspace of a selection."""
    import torch

    problem, arguments = scored.problem, dict(scored.arguments)
    heads, rows, _ = arguments["scores"].shape
    arguments["ids"] = torch.zeros((heads, rows, problem.topk + 2), dtype=torch.int32)[..., : problem.topk]
    arguments["ascending"] = ascending
    outputs = ["ids"]
    if pages_per_block:
        arguments |= {**topk_inputs.tables(problem, heads, rows), "pages_per_block": pages_per_block}
        outputs += ["page_table", "context_lens"]
    arguments |= workspace(flags, heads, rows, problem.topk, "cpu")
    return replace(scored, arguments=arguments, outputs=tuple(outputs))


def reference(problem: Problem, arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The float64 scores, sorted."""
    scores = index_inputs.reference(problem, arguments)
    return topk_inputs.reference(problem, {**arguments, "scores": scores})


def workspace(flags: Mapping[str, Any], heads: int, rows: int, topk: int, device: str) -> dict[str, torch.Tensor]:
    """What the launcher's `workspace` asks for, spoiled where it may be."""
    if flags["FORM"] == "apart":
        splits = {"MERGE": flags["MERGE"], "SPLITS": flags["SELECT_SPLITS"]}
    else:
        splits = {"MERGE": "last", "SPLITS": flags["SPLITS"]}
    made = topk_inputs.workspace(splits, heads, rows, topk, device)
    if flags["FORM"] == "scores":
        del made["partial_keys"]
    return made
