"""Inputs of a decode-attention op: as an engine sends them, and as they hurt; and the float64 answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops.base import Case
from m3gen.spec import Problem, dtype

if TYPE_CHECKING:
    import torch

# A cache larger than any 32-bit byte offset reaches: what an engine allocates, and other code than a small one.
_REAL_CACHE_BYTES = 3 << 30


@dataclass(frozen=True, slots=True)
class Layout:
    """How the cache and the queries lie in memory; logical shapes never change.

    `heads_first`    pages are [kv_heads, page, ...] (HND) rather than [page, kv_heads, ...] (NHD)
    `interleaved`    K and V share one row of 2 * head_dim elements, as vLLM keeps them
    `padded_rows`    q is a slice of a wider fused row, the block table a slice of a wider table
    `first_page`     pages in use start here; far enough, their byte offsets pass 2^32
    """

    heads_first: bool = True
    interleaved: bool = True
    padded_rows: bool = True
    first_page: int = 1


def example(problem: Problem, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Launcher arguments on the meta device, cache interleaved (HND) and over 2 GiB."""
    import torch

    requests = max(1, problem.rows // problem.query_len)
    rows = requests * problem.query_len
    page_bytes = 2 * problem.kv_heads * problem.page_size * problem.head_dim * dtype(problem.kv_dtype).bytes
    pages = -(-_REAL_CACHE_BYTES // page_bytes)

    def empty(*shape: int, of: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=of, device="meta")

    q_dtype, kv_dtype = dtype(problem.q_dtype).torch(), dtype(problem.kv_dtype).torch()
    cache = empty(pages, problem.kv_heads, problem.page_size, 2 * problem.head_dim, of=kv_dtype)
    arguments: dict[str, Any] = {
        "q": empty(rows, problem.q_heads, problem.head_dim, of=q_dtype),
        "k_cache": cache[..., : problem.head_dim],
        "v_cache": cache[..., problem.head_dim :],
        "block_table": empty(requests, -(-problem.context // problem.page_size), of=torch.int32),
        "seq_lens": empty(requests, of=torch.int32),
        "out": empty(rows, problem.q_heads, problem.head_dim, of=q_dtype),
        "softmax_scale": problem.head_dim**-0.5,
        "query_len": problem.query_len,
    }
    if problem.kv_scale == "scalar":
        arguments |= {"k_scale": empty(1, of=torch.float32), "v_scale": empty(1, of=torch.float32)}
    elif problem.kv_scale == "per_token_head":
        scales = empty(2, problem.kv_heads, pages * problem.page_size, of=torch.float32)
        arguments |= {"k_scale": scales[0], "v_scale": scales[1]}
    return arguments | _workspace(flags, rows, problem, "meta")


def topk_example(problem: Problem) -> torch.Tensor:
    """The top-k lists beside `example`."""
    import torch

    rows = max(1, problem.rows // problem.query_len) * problem.query_len
    return torch.empty((problem.kv_heads, rows, problem.topk), dtype=torch.int32, device="meta")


def far_page(problem: Problem, layout: Layout) -> int:
    """The first page whose element offset in a cache of this layout passes 2^31."""
    sides = 2 if layout.interleaved else 1
    return (1 << 31) // (sides * problem.kv_heads * problem.page_size * problem.head_dim) + 1


def reference(problem: Problem, arguments: Mapping[str, Any]) -> torch.Tensor:
    """softmax(scale * q K^T) V in float64 over the tokens each row attends to; [rows, q_heads, head_dim].

    P is not rounded and nothing is split: the definition, not a schedule.
    """
    import torch

    q = arguments["q"].double()
    out = torch.zeros(q.shape, dtype=torch.float64)
    for row in range(q.shape[0]):
        for kv_head in range(problem.kv_heads):
            pieces = list(attended(problem, arguments, row, kv_head))
            if pieces:
                keys = torch.cat([_tokens(arguments, "k", problem, kv_head, *piece) for piece in pieces])
                values = torch.cat([_tokens(arguments, "v", problem, kv_head, *piece) for piece in pieces])
                heads = slice(kv_head * problem.group_size, (kv_head + 1) * problem.group_size)
                scores = q[row, heads] @ keys.T * arguments["softmax_scale"]
                out[row, heads] = torch.softmax(scores, dim=-1) @ values
    return out


def attended(problem: Problem, arguments: Mapping[str, Any], row: int, kv_head: int) -> Iterator[tuple[int, int]]:
    """(page, tokens of it) that a query row sees: the blocks of its list, or all where there are no lists."""
    request, token = divmod(row, problem.query_len)
    kv_len = max(int(arguments["seq_lens"][request]) - problem.query_len + token + 1, 0)
    everything = range(-(-kv_len // problem.page_size))
    lists = arguments.get("topk_ids")
    for block in everything if lists is None else lists[kv_head, row].tolist():
        if block in everything and (page := int(arguments["block_table"][request, block])) >= 0:
            yield page, min(problem.page_size, kv_len - block * problem.page_size)


def _tokens(
    arguments: Mapping[str, Any], side: str, problem: Problem, kv_head: int, page: int, live: int
) -> torch.Tensor:
    """The first `live` tokens of one page, dequantised, in float64."""
    tokens: torch.Tensor = arguments[f"{side}_cache"][page, kv_head, :live].double()
    if problem.kv_scale == "scalar":
        tokens = tokens * arguments[f"{side}_scale"].double()
    elif problem.kv_scale == "per_token_head":
        first = page * problem.page_size
        tokens = tokens * arguments[f"{side}_scale"][kv_head, first : first + live, None].double()
    return tokens


def _workspace(flags: Mapping[str, Any], rows: int, problem: Problem, device: str) -> dict[str, torch.Tensor]:
    """What the launcher's `workspace` asks for."""
    import torch

    if flags["MERGE"] == "none":
        return {}
    splits = flags["SPLITS"] * flags["PAGE_SPLITS"]
    partial = getattr(torch, flags["PARTIAL_TORCH"])
    shape = (splits, rows, problem.q_heads)
    made = {
        "partial_out": torch.full((*shape, problem.head_dim), float("nan"), dtype=partial, device=device),
        "partial_lse": torch.full(shape, float("nan"), dtype=torch.float32, device=device),
    }
    if flags["MERGE"] == "last":
        tiles = rows // flags["PACK"] * problem.kv_heads
        made["arrivals"] = torch.zeros(tiles, dtype=torch.int32, device=device)
    return made


class CaseBuilder:
    """Makes cases: real data where a row may look, NaN everywhere else. With top-k lists where `lists`."""

    def __init__(
        self, problem: Problem, flags: Mapping[str, Any], layout: Layout, seed: int, *, lists: bool
    ) -> None:
        import torch

        self.problem, self.flags, self.layout, self.seed, self.lists = problem, flags, layout, seed, lists
        self.generator = torch.Generator().manual_seed(seed)

    def case(self, name: str, seq_lens: Sequence[int], *, hostile: bool = False, grid: str = "awkward") -> Case:
        """One case of these lengths. Hostile: what no row may look at is as wrong as it can be, and requests
        share their first page, as a common prefix makes them."""
        import torch

        problem = self.problem
        rows = len(seq_lens) * problem.query_len
        table = self._table(seq_lens, hostile)
        k_cache, v_cache = self._caches(seq_lens, table)
        arguments: dict[str, Any] = {
            "q": self._rows(rows),
            "k_cache": k_cache,
            "v_cache": v_cache,
            "block_table": table,
            "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
            "out": torch.full_like(self._rows(rows), float("nan")),
            "softmax_scale": problem.head_dim**-0.5,
            "query_len": problem.query_len,
            **self._scales(k_cache.shape[0]),
            **_workspace(self.flags, rows, problem, "cpu"),
        }
        if self.lists:
            arguments["topk_ids"] = self._lists(seq_lens, hostile)
        heads = range(problem.kv_heads)
        empty = [row for row in range(rows) if not any(any(attended(problem, arguments, row, h)) for h in heads)]
        return Case(
            name=name,
            problem=problem,
            arguments=arguments,
            outputs=("out",),
            zero_rows=tuple(empty),
            tolerances=grid,
            seed=self.seed,
        )

    def _table(self, seq_lens: Sequence[int], hostile: bool) -> torch.Tensor:
        """int32 [requests, blocks of the longest]: pages in random order, 0 after the last of a request.

        Hostile: -1 after the last, and in the longest request in place of its second page.
        """
        import torch

        page = self.problem.page_size
        blocks = [-(-length // page) for length in seq_lens]
        width = max(*blocks, 1)
        table = torch.zeros((len(seq_lens), width + 3 * self.layout.padded_rows), dtype=torch.int32)
        if hostile:
            table.fill_(-1)
        pages = torch.randperm(sum(blocks), generator=self.generator).int() + self.layout.first_page
        for request, count in enumerate(blocks):
            table[request, :count] = pages[sum(blocks[:request]) :][:count]
        if hostile:
            full = [request for request, length in enumerate(seq_lens) if length >= page]
            table[full, 0] = table[full[:1], 0]
            longest = blocks.index(max(blocks))
            table[longest, 1:2] = -1
        return table[:, :width]

    def _rows(self, rows: int) -> torch.Tensor:
        import torch

        p = self.problem
        wide = p.q_heads + (3 if self.layout.padded_rows else 0)
        data = torch.randn((rows, wide, p.head_dim), generator=self.generator)
        return data.to(dtype(p.q_dtype).torch())[:, : p.q_heads]

    def _caches(self, seq_lens: Sequence[int], block_table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[pages, kv_heads, page, head_dim] each; NaN in page 0, in unused pages and past each sequence's end.

        Pages before `first_page` are never touched, so the memory behind them is never committed.
        """
        import torch

        p, layout = self.problem, self.layout
        kv = dtype(p.kv_dtype).torch()
        pages = max(int(block_table.max()) + 1, layout.first_page + 1)
        inner = (p.kv_heads, p.page_size) if layout.heads_first else (p.page_size, p.kv_heads)
        sides = [0, 0] if layout.interleaved else [0, 1]
        width = 2 * p.head_dim if layout.interleaved else p.head_dim
        stores = [torch.empty((pages, *inner, width), dtype=kv) for _ in sorted(set(sides))]
        for store in stores:
            _poison(store[:1])
            _poison(store[layout.first_page :])
        views = []
        for index, side in enumerate(sides):
            logical = stores[side] if layout.heads_first else stores[side].transpose(1, 2)
            first = index * p.head_dim if layout.interleaved else 0
            views.append(logical[..., first : first + p.head_dim])
        for request, length in enumerate(seq_lens):
            for block in range(-(-length // p.page_size)):
                if (page := int(block_table[request, block])) < 0:
                    continue
                live = min(p.page_size, length - block * p.page_size)
                for view in views:
                    data = torch.randn((p.kv_heads, live, p.head_dim), generator=self.generator)
                    view[page, :, :live] = data.to(kv)
        return views[0], views[1]

    def _lists(self, seq_lens: Sequence[int], hostile: bool) -> torch.Tensor:
        """int32 [kv_heads, rows, topk]: the newest block and a random choice of the others, in random order.

        Hostile: -1 stands between the entries, ids past the context follow them, one whose token offset wraps
        among them, and the last request's last row selects nothing at all.
        """
        import torch

        p = self.problem
        rows = len(seq_lens) * p.query_len
        lists = torch.full((p.kv_heads, rows, p.topk), -1, dtype=torch.int32)
        for row in range(rows):
            kv_len = seq_lens[row // p.query_len] - p.query_len + row % p.query_len + 1
            visible = max(-(-kv_len // p.page_size), 0)
            for kv_head in range(p.kv_heads):
                chosen = torch.randperm(max(visible - 1, 0), generator=self.generator)[: p.topk - 1].tolist()
                chosen = [*chosen, visible - 1] if visible else []
                order = torch.randperm(len(chosen), generator=self.generator).tolist()
                chosen = [chosen[i] for i in order]
                if hostile and len(chosen) <= p.topk // 2:
                    chosen = [x for block in chosen for x in (block, -1)]
                    chosen += [visible, 2**31 - 1][: p.topk - len(chosen)]
                lists[kv_head, row, : len(chosen)] = torch.tensor(chosen, dtype=torch.int32)
        if hostile:
            lists[:, -1] = -1
        return lists

    def _scales(self, pages: int) -> dict[str, torch.Tensor]:
        import torch

        p = self.problem
        if p.kv_scale == "none":
            return {}
        if p.kv_scale == "scalar":
            return {"k_scale": torch.tensor([0.5]), "v_scale": torch.tensor([0.25])}
        tokens = pages * p.page_size
        first = self.layout.first_page * p.page_size
        made = {}
        for side in ("k", "v"):
            scales = torch.empty((p.kv_heads, tokens))
            _poison(scales[:, : p.page_size])
            scales[:, first:] = 0.5 + torch.rand((p.kv_heads, tokens - first), generator=self.generator)
            made[f"{side}_scale"] = scales
        return made


def _poison(tensor: torch.Tensor) -> None:
    """NaN in every element; fp8 by its NaN code (0x7F in e4m3fn, 0x80 in e4m3fnuz), since fill_ may saturate."""
    import torch

    codes = {torch.float8_e4m3fn: 0x7F, torch.float8_e4m3fnuz: 0x80}
    if tensor.dtype in codes:
        tensor.view(torch.uint8).fill_(codes[tensor.dtype])
    else:
        tensor.fill_(float("nan"))
