"""Inputs of the top-k: scores as the scorer leaves them, and as they hurt; and the answer by sorting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from m3gen.ops.base import Case
from m3gen.spec import Problem

if TYPE_CHECKING:
    import torch

_PAGE_TOKENS = 16  # of the page table's pages


def capacity(topk: int) -> int:
    """Places of a list in a kernel: `topk` rounded up to a power of two."""
    return 1 << (topk - 1).bit_length()


def example(problem: Problem, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Launcher arguments on the meta device: ids in the order of selection, no page table."""
    import torch

    requests = max(1, problem.rows // problem.query_len)
    rows = requests * problem.query_len
    blocks = -(-problem.context // problem.page_size)
    return {
        "scores": torch.empty((problem.group_size, rows, _rounded(blocks)), device="meta"),
        "seq_lens": torch.empty(requests, dtype=torch.int32, device="meta"),
        "ids": torch.empty((problem.group_size, rows, problem.topk), dtype=torch.int32, device="meta"),
        "query_len": problem.query_len,
        **workspace(flags, problem.group_size, rows, problem.topk, "meta"),
    }


def cases(problem: Problem, flags: Mapping[str, Any], seed: int) -> Iterator[Case]:
    """Every kind of score in every row of each case, at block counts around the list's length and the tile's."""
    topk, tile, page = problem.topk, int(flags["TILE"]), problem.page_size
    some = [0, 1, page - 1, page + 1, (topk - 1) * page, topk * page, topk * page + 1, 20 * page]
    yield case(problem, flags, "lengths", some, seed)
    yield case(problem, flags, "page table", [0, page - 1, 20 * page - 3], seed, ascending=True, pages_per_block=8)
    edges = [(tile + d) * page for d in (-1, 0, 1)]
    yield case(problem, flags, "tile edges", [*edges, 3 * tile * page - 5], seed, pages_per_block=16)
    if problem.query_len > 1:  # rows before the sequence began, and rows on either side of a block's edge
        yield case(problem, flags, "shorter than the query", [max(1, problem.query_len - 2), page + 1], seed)
    # Of the lengths of vLLM's grid (tests/kernels/attention/test_minimax_m3.py) those that fill a list.
    yield case(problem, flags, "peers", [8 * page + 1, 32 * page + 1], seed, grid="peers")


def case(
    problem: Problem,
    flags: Mapping[str, Any],
    name: str,
    seq_lens: Sequence[int],
    seed: int,
    *,
    ascending: bool = False,
    pages_per_block: int = 0,
    grid: str = "awkward",
) -> Case:
    """One case; with `pages_per_block` a page table is asked for. Scores past each row's blocks are +inf, and NaN
    past the widest row's, where nothing may look."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    heads, topk = problem.group_size, problem.topk
    rows = len(seq_lens) * problem.query_len
    width = max(1, *(-(-length // problem.page_size) for length in seq_lens))
    store = torch.full((heads, rows + 1, _rounded(width) + 3), float("nan"))
    scores = store[:, :rows, : _rounded(width)]
    for head in range(heads):
        for row in range(rows):
            scores[head, row, :width] = hostile_scores(width, head + row, generator)
            seen = num_blocks(problem, seq_lens, row)
            scores[head, row, seen:width] = float("inf")
    lists = torch.full((heads, rows, topk + 2), 0, dtype=torch.int32)
    arguments: dict[str, Any] = {
        "scores": scores,
        "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
        "ids": lists[..., :topk],
        "query_len": problem.query_len,
        "ascending": ascending,
        **workspace(flags, heads, rows, topk, "cpu"),
    }
    outputs = ["ids"]
    if pages_per_block:
        pages = torch.randperm(len(seq_lens) * width, generator=generator).int() + 1
        arguments |= {
            "block_table": pages.reshape(len(seq_lens), width),
            **tables(problem, heads, rows),
            "pages_per_block": pages_per_block,
        }
        outputs += ["page_table", "context_lens"]
    return Case(
        name=name,
        problem=problem,
        arguments=arguments,
        outputs=tuple(outputs),
        zero_rows=(),
        tolerances=grid,
        seed=seed,
    )


def tables(problem: Problem, heads: int, rows: int) -> dict[str, torch.Tensor]:
    """The outputs that a launch may go without."""
    import torch

    pages = problem.topk * problem.page_size // _PAGE_TOKENS
    return {
        "page_table": torch.zeros((heads, rows, pages), dtype=torch.int32),
        "context_lens": torch.zeros((heads, rows), dtype=torch.int32),
    }


def hostile_scores(count: int, kind: int, generator: torch.Generator) -> torch.Tensor:
    """fp32 [count] of one of eight kinds: distinct, few values, all equal, all NaN, all -inf, zeros of both signs,
    forced ones among the others, and everything at once."""
    import torch

    scores = torch.randn(count, generator=generator)
    pick = torch.randint(0, 8, (count,), generator=generator)
    few = torch.tensor([0.0, -0.0, 1.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan")])
    codes = torch.tensor([1, -1, 0x7FC00001, -0x400000], dtype=torch.int32).view(torch.float32)  # tiny, NaN
    kinds = (
        scores,
        scores.round(),
        torch.full((count,), 2.5),
        torch.full((count,), float("nan")),
        torch.full((count,), float("-inf")),
        torch.where(pick < 4, 0.0, -0.0),
        torch.where(pick == 0, 1e30, torch.where(pick == 1, 1e29, scores)),
        torch.where(pick < 3, scores, torch.where(pick < 4, codes[pick % 4], few[(pick * 5 + 3) % 8])),
    )
    return kinds[kind % len(kinds)]


def num_blocks(problem: Problem, seq_lens: Sequence[int], row: int) -> int:
    """Blocks that a row sees."""
    kv_len = seq_lens[row // problem.query_len] - problem.query_len + row % problem.query_len + 1
    return -(-max(kv_len, 0) // problem.page_size)


def in_order(scores: Sequence[float]) -> list[int]:
    """The total order: numbers before NaN, the greater before the less, the lower id before the higher."""

    def key(block: int) -> tuple[bool, float, int]:
        score = scores[block]
        is_nan = score != score
        return is_nan, 0.0 if is_nan else -score, block

    return sorted(range(len(scores)), key=key)


def reference(problem: Problem, arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The definition: each row's blocks by Python's own sort."""
    import torch

    scores, seq_lens = arguments["scores"].tolist(), arguments["seq_lens"].tolist()
    found = {
        name: arguments[name].double().fill_(0)
        for name in ("ids", "page_table", "context_lens")
        if name in arguments
    }
    for head, of_head in enumerate(scores):
        for row, of_row in enumerate(of_head):
            count = num_blocks(problem, seq_lens, row)
            chosen = in_order(of_row[:count])[: problem.topk]
            listed = sorted(chosen) if arguments.get("ascending") else chosen
            padded = [*listed, *[-1] * (problem.topk - len(listed))]
            found["ids"][head, row] = torch.tensor(padded, dtype=torch.float64)
            if "page_table" in found:
                pages, tokens = _pages(problem, arguments, row, chosen, count)
                found["page_table"][head, row, : len(pages)] = torch.tensor(pages, dtype=torch.float64)
                found["context_lens"][head, row] = tokens
    return found


def _pages(
    problem: Problem, arguments: Mapping[str, Any], row: int, chosen: Sequence[int], count: int
) -> tuple[list[int], int]:
    """The pages of one row's blocks, the newest block's last, and how many tokens they hold."""
    request, token = divmod(row, problem.query_len)
    kv_len = int(arguments["seq_lens"][request]) - problem.query_len + token + 1
    blocks = [b for b in chosen if b != count - 1] + [b for b in chosen if b == count - 1]
    each, stride = problem.page_size // _PAGE_TOKENS, arguments["pages_per_block"]
    first = [int(arguments["block_table"][request, block]) * stride for block in blocks]
    return [page + j for page in first for j in range(each)], sum(
        min(problem.page_size, kv_len - block * problem.page_size) for block in blocks
    )


def workspace(flags: Mapping[str, Any], heads: int, rows: int, topk: int, device: str) -> dict[str, torch.Tensor]:
    """What the launcher's `workspace` asks for, spoiled where it may be."""
    import torch

    if flags["MERGE"] == "none":
        return {}
    keys = torch.full(
        (heads, rows, flags["SPLITS"], capacity(topk)), (1 << 63) - 1, dtype=torch.int64, device=device
    )
    made = {"partial_keys": keys}
    if flags["MERGE"] == "last":
        made["arrivals"] = torch.zeros((heads, rows), dtype=torch.int32, device=device)
    return made


def _rounded(blocks: int) -> int:
    """A score buffer's width: strides stay multiples of 16."""
    return -(-blocks // 16) * 16
