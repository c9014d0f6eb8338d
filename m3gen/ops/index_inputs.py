"""Inputs of the index scorer: as an engine sends them, and as they hurt; and the float64 answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops.base import Case
from m3gen.spec import MINIMAX_M3, Problem, dtype

if TYPE_CHECKING:
    import torch

# vLLM's forced scores (vllm/models/minimax_m3/common/ops/index_topk.py).
INIT_SCORE = 1e30
LOCAL_SCORE = 1e29

# A cache larger than any 32-bit byte offset reaches: what an engine allocates, and other code than a small one.
_REAL_CACHE_BYTES = 3 << 30
# Score buffers are rounded up, so that their strides stay multiples of 16.
_WIDTH_MULTIPLE = 16
_NAN_CODES = {"e4m3fn": 0x7F, "e4m3fnuz": 0x80}


@dataclass(frozen=True, slots=True)
class Layout:
    """How things lie in memory; logical shapes never change.

    `padded`       q is a slice of a wider fused row, keys of a wider page, the table and the scores of larger ones
    `first_page`   pages in use start here; far enough, their byte offsets pass 2^32
    """

    padded: bool = True
    first_page: int = 1


@dataclass(frozen=True, slots=True)
class Data:
    """What queries and keys hold.

    `whole`     small whole numbers, which every dtype holds and whose products add up exactly: scores that are
                equal are equal in fp32 too
    `copies`    the blocks of a sequence share three pages
    `spoiled`   NaN and infinities in the first blocks of each sequence of three blocks or more
    """

    whole: bool = False
    copies: bool = False
    spoiled: bool = False


def example(problem: Problem) -> dict[str, Any]:
    """Launcher arguments on the meta device, with a cache of over 2 GiB."""
    import torch

    requests = max(1, problem.rows // problem.query_len)
    rows = requests * problem.query_len
    blocks = -(-problem.context // problem.page_size)
    page_bytes = problem.page_size * problem.head_dim * dtype(problem.kv_dtype).bytes

    def empty(*shape: int, of: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=of, device="meta")

    return {
        "q": empty(rows, problem.group_size, problem.head_dim, of=dtype(problem.q_dtype).torch()),
        "k_cache": empty(
            -(-_REAL_CACHE_BYTES // page_bytes),
            problem.page_size,
            problem.head_dim,
            of=dtype(problem.kv_dtype).torch(),
        ),
        "block_table": empty(requests, blocks, of=torch.int32),
        "seq_lens": empty(requests, of=torch.int32),
        "scores": empty(problem.group_size, rows, _rounded(blocks), of=torch.float32),
        "query_len": problem.query_len,
        "init_blocks": MINIMAX_M3.init_blocks,
        "local_blocks": MINIMAX_M3.local_blocks,
    }


def cases(problem: Problem, seed: int) -> Iterator[Case]:
    """The awkward grid, then a peers' grid (MiniMax-AI/MSA, tests/inference/msa_v1/indexer/decode)."""
    page, qlen = problem.page_size, problem.query_len
    awkward = Builder(problem, Layout(), seed)
    # One below, at and one above a page; one query; padding; forced blocks that meet and overlap.
    lengths = [qlen, page - 1, page, page + 1, 0, 4 * page + 44]
    yield awkward.case("lengths", lengths, init_blocks=2, local_blocks=1)
    plain = Builder(problem, Layout(padded=False), seed)
    yield plain.case("nan and infinities in the data", [4 * page, 0], local_blocks=0, data=Data(spoiled=True))
    far = Layout(first_page=(1 << 31) // (page * problem.head_dim) + 1)
    yield Builder(problem, far, seed).case("page offset past 2^31", [page + 1])
    if qlen > 1:  # rows before the sequence began
        yield awkward.case("shorter than the query", [max(1, qlen - 2), page + 1])
    lens = [qlen, page + 1, 5 * page + 5]
    yield plain.case("peers " + "-".join(map(str, lens)), lens, local_blocks=0, grid="peers")


def reference(problem: Problem, arguments: Mapping[str, Any]) -> torch.Tensor:
    """The definition, row by row, in float64 [heads, rows, width]; forced scores as fp32 holds them."""
    import torch

    q, k = arguments["q"], arguments["k_cache"]
    if q.dtype != k.dtype:
        q, k = q.to(torch.bfloat16), k.to(torch.bfloat16)
    page, heads = problem.page_size, q.shape[1]
    scores = torch.full(arguments["scores"].shape, float("-inf"), dtype=torch.float64)
    init_score, local_score = torch.tensor([INIT_SCORE, LOCAL_SCORE], dtype=torch.float32).double()
    for row in range(q.shape[0]):
        request, token = divmod(row, problem.query_len)
        kv_len = max(int(arguments["seq_lens"][request]) - problem.query_len + token + 1, 0)
        num_blocks = -(-kv_len // page)
        for block in range(num_blocks):
            live = min(page, kv_len - block * page)
            keys = k[int(arguments["block_table"][request, block]), :live].double()
            scores[:heads, row, block] = (q[row].double() @ keys.T).amax(1)  # NaN wins
        scores[:, row, : min(arguments["init_blocks"], num_blocks)] = init_score
        scores[:, row, max(num_blocks - arguments["local_blocks"], 0) : num_blocks] = local_score
    return scores


def _rounded(blocks: int) -> int:
    return max(1, -(-blocks // _WIDTH_MULTIPLE)) * _WIDTH_MULTIPLE


class Builder:
    """Makes one case: real data where a row may look, NaN everywhere else."""

    def __init__(self, problem: Problem, layout: Layout, seed: int) -> None:
        import torch

        self.problem, self.layout, self.seed = problem, layout, seed
        self.generator = torch.Generator().manual_seed(seed)

    def case(
        self,
        name: str,
        seq_lens: Sequence[int],
        *,
        init_blocks: int = 0,
        local_blocks: int = 1,
        data: Data = Data(),
        grid: str = "awkward",
    ) -> Case:
        import torch

        problem, pad = self.problem, 3 * self.layout.padded
        rows = len(seq_lens) * problem.query_len
        blocks = [-(-length // problem.page_size) for length in seq_lens]
        width = max(max(blocks), 1)
        block_table = torch.zeros((len(seq_lens), width + pad), dtype=torch.int32)
        pages = torch.randperm(sum(blocks), generator=self.generator).int() + self.layout.first_page
        for request, count in enumerate(blocks):
            block_table[request, :count] = pages[sum(blocks[:request]) :][:count]
        scores = torch.full((problem.group_size, rows + pad, _rounded(width) + pad), float("nan"))
        if data.copies:
            block_table[:, 3:width] = block_table[:, torch.arange(3, width) % 3]
        q, k_cache = self._queries(rows, data), self._keys(seq_lens, block_table, data)
        for request, count in enumerate(blocks):
            if data.spoiled and count >= 3:
                _spoil(q, k_cache, block_table[request])
        return Case(
            name=name,
            problem=problem,
            arguments={
                "q": q,
                "k_cache": k_cache,
                "block_table": block_table[:, :width],
                "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
                "scores": scores[:, :rows, : _rounded(width)],
                "query_len": problem.query_len,
                "init_blocks": init_blocks,
                "local_blocks": local_blocks,
            },
            outputs=("scores",),
            zero_rows=(),
            tolerances=grid,
            seed=self.seed,
        )

    def _queries(self, rows: int, data: Data) -> torch.Tensor:
        p = self.problem
        wide = p.group_size + 2 * self.layout.padded
        drawn = self._draw((rows, wide, p.head_dim), data)
        return drawn.to(dtype(p.q_dtype).torch())[:, : p.group_size]

    def _keys(self, seq_lens: Sequence[int], block_table: torch.Tensor, data: Data) -> torch.Tensor:
        """[pages, page, head_dim]; NaN in page 0, in unused pages and past each sequence's end.

        Pages before `first_page` are never touched, so the memory behind them is never committed.
        """
        import torch

        p, layout = self.problem, self.layout
        pages = max(int(block_table.max()) + 1, layout.first_page + 1)
        wide = p.page_size + (p.page_size // 8) * layout.padded
        store = torch.empty((pages, wide, p.head_dim), dtype=dtype(p.kv_dtype).torch())
        for part in (store[:1], store[layout.first_page :]):
            if p.kv_dtype in _NAN_CODES:  # fill_ may saturate
                part.view(torch.uint8).fill_(_NAN_CODES[p.kv_dtype])
            else:
                part.fill_(float("nan"))
        keys = store[:, : p.page_size]
        for request, length in enumerate(seq_lens):
            for block in range(-(-length // p.page_size)):
                live = min(p.page_size, length - block * p.page_size)
                drawn = self._draw((live, p.head_dim), data)
                keys[int(block_table[request, block]), :live] = drawn.to(keys.dtype)
        return keys

    def _draw(self, shape: tuple[int, ...], data: Data) -> torch.Tensor:
        import torch

        if data.whole:
            return torch.randint(-2, 3, shape, generator=self.generator).float()
        return torch.randn(shape, generator=self.generator)


def _spoil(q: torch.Tensor, k_cache: torch.Tensor, pages: torch.Tensor) -> None:
    """In one sequence: block 0 holds a NaN, blocks 1 and 2 nothing but infinite products of either sign,
    where the keys' dtype has infinities (then q is of one sign in that place, but in its last head)."""
    import torch

    nan, low, high = (int(page) for page in pages[:3])
    if k_cache.dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz):
        k_cache[nan, 5, 7] = k_cache[0, 0, 0]  # page 0 is NaN throughout
        return
    k_cache[nan, 5, 7] = float("nan")
    k_cache[low, :, 0] = float("-inf")
    k_cache[high, :, 0] = float("inf")
    q[:, :-1, 0] = 1.5
