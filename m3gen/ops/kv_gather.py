"""`kv_gather`: the first tokens of requests out of their pages into contiguous rows, as stored or dequantised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_inputs, cache_space, launch_space
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.cache_inputs import CacheLayout
from m3gen.space import Config, Ordinal, PowerOfTwo, Space
from m3gen.spec import Problem, Shard, dtype
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class KvGather:
    """Rows starts[r] to starts[r + 1] - 1 of k_out and v_out [tokens, kv_heads, head_dim] become the first tokens
    of request r, which lie in the pages block_table[r] [max_blocks] of k_cache and v_cache.

    Into an output of the cache's dtype the bytes go as they are, and scales per token and head go along into
    [kv_heads, tokens] planes; into one of the model's dtype a value goes times its scale, in fp32, rounded once.
    A cache without scales is gathered as stored only.
    A token whose page the table or the cache lacks comes out zero, with scale 1; rows past the outputs are not
    written, nor those that no request fills.

    Problem: kv_heads, block tables of `rows` requests with `context` tokens each; group_size, query_len and topk
    do not matter.
    """

    name: str = "kv_gather"
    title: str = "Gather of paged K and V into contiguous rows."
    template: str = "kv_gather.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return cache_space.cache_problem(self.name, device, shard, cache)

    def canonical(self, problem: Problem) -> Problem:
        return problem

    def space(self, problem: Problem, device: Device) -> Space:
        return Space(
            [
                PowerOfTwo("tile_n", 8, problem.page_size, default=32, doc="tokens of one iteration"),
                PowerOfTwo("parts", 1, 256, default=16, doc="programs of one head of a request"),
                cache_space.num_warps(device, default=4),
                Ordinal("num_stages", (1, 2), default=1, doc="iterations whose loads are in flight"),
            ],
            cache_space.lane_constraints(device, problem.head_dim, items=("tile_n",), loaded=problem.kv_dtype),
        )

    def default(self, problem: Problem, device: Device) -> Config:
        """vLLM's gather_and_maybe_dequant_cache copies token by token with vectorised loads and has no constants
        that map onto tiles; this is the middle of the space."""
        return self.space(problem, device).default()

    def variant(self, problem: Problem) -> Mapping[str, Any]:
        return cache_space.dtypes(problem)

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        options = launch_space.options(config)
        return {
            "TILE_N": config["tile_n"],
            "PARTS": config["parts"],
            "NUM_STAGES": config["num_stages"],
            "OPTIONS": options,
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        tokens = problem.rows * problem.context
        elements = 2 * tokens * problem.kv_heads * problem.head_dim
        stored = elements * dtype(problem.kv_dtype).bytes
        scales = 2 * tokens * problem.kv_heads * 4 if problem.kv_scale == "per_token_head" else 0
        tiles = -(-problem.context // int(config["tile_n"]))
        return (
            Work(
                kernel="gather_pages",
                read_bytes=stored + scales + tokens // problem.page_size * 4,
                written_bytes=elements * dtype(_gathered(problem)).bytes,
                streamed_bytes=stored + scales,
                flops=0,
                loop_trips=-(-tiles // int(config["parts"])),
                loads_ahead=int(config["num_stages"]) - 1,
                lookups=1,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        """Into rows of the model's dtype, where there are scales."""
        import torch

        def empty(*shape: int, of: torch.dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=of, device="meta")

        k_cache, v_cache = cache_inputs.real_caches(problem)
        blocks = -(-problem.context // problem.page_size)
        shape = (problem.rows * problem.context, problem.kv_heads, problem.head_dim)
        of = dtype(_gathered(problem)).torch()
        return {
            "k_cache": k_cache,
            "v_cache": v_cache,
            "block_table": empty(problem.rows, blocks, of=torch.int32),
            "starts": empty(problem.rows + 1, of=torch.int32),
            "k_out": empty(*shape, of=of),
            "v_out": empty(*shape, of=of),
            **cache_inputs.real_scales(problem),
        }

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        page = problem.page_size
        lengths = [page + 1, 0, page - 1, 1, page]
        yield _case("lengths", problem, seed, lengths, spare_rows=3)
        if problem.kv_scale != "none":
            yield _case("as stored", problem, seed, lengths, spare_rows=3, dequantise=False)
        plain = CacheLayout(heads_first=False, interleaved=False)
        yield _case("plain layout, pages missing", problem, seed, [page + 40, 5], layout=plain, missing=True)
        yield _case("page offset past 2^31", problem, seed, [2 * page + 7], layout=CacheLayout(far=True))

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        """Token by token."""
        import torch

        p, a = case.problem, case.arguments
        expected = {name: a[name].clone() for name in case.outputs}
        starts, table, pages = a["starts"].tolist(), a["block_table"].tolist(), len(a["k_cache"])
        for request, blocks in enumerate(table):
            for row in range(starts[request], min(starts[request + 1], len(a["k_out"]))):
                block, token = divmod(row - starts[request], p.page_size)
                page = blocks[block] if block < len(blocks) and 0 <= blocks[block] < pages else None
                for side in "kv":
                    out, scale = expected[f"{side}_out"], torch.ones(p.kv_heads)
                    stored = torch.zeros(p.kv_heads, p.head_dim, dtype=a[f"{side}_cache"].dtype)
                    if page is not None:
                        stored = a[f"{side}_cache"][page, :, token]
                        if p.kv_scale == "scalar":
                            scale = a[f"{side}_scale"].expand(p.kv_heads)
                        elif p.kv_scale == "per_token_head":
                            scale = a[f"{side}_scale"][:, page * p.page_size + token]
                    is_stored = out.dtype == stored.dtype
                    out[row] = stored if is_stored else (stored.float() * scale[:, None]).to(out.dtype)
                    if f"{side}_scale_out" in expected:
                        expected[f"{side}_scale_out"][:, row] = scale
        return expected

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Every output is exact: the bytes, or torch's own cast of the fp32 product."""
        return Tolerance(source="m3gen")


def _gathered(problem: Problem) -> str:
    """The dtype of rows that come out as numbers: without a scale they are what is stored."""
    return problem.kv_dtype if problem.kv_scale == "none" else problem.q_dtype


def _case(
    name: str,
    problem: Problem,
    seed: int,
    lengths: Sequence[int],
    *,
    layout: CacheLayout = CacheLayout(),  # noqa: B008
    spare_rows: int = 1,
    dequantise: bool = True,
    missing: bool = False,
) -> Case:
    """Requests of these lengths in shuffled pages, tables cut from a wider one; `missing`: one table is short, one
    names a page the cache lacks."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    blocks = [-(-length // problem.page_size) for length in lengths]
    pages = 3 if layout.far else sum(blocks) + 2
    order = torch.randperm(pages, generator=generator).int()
    if layout.far:
        order = torch.tensor([2, 0, 1], dtype=torch.int32)
    table = torch.full((len(lengths), max(blocks) + 2), -1, dtype=torch.int32)
    for request, count in enumerate(blocks):
        table[request, :count] = order[sum(blocks[:request]) :][:count]
    width = max(blocks)
    if missing:
        table[1, 0], width = pages, width - 1
    k_cache, v_cache = cache_inputs.kv_caches(problem, pages, layout, generator)
    of = dtype(_gathered(problem) if dequantise else problem.kv_dtype).torch()
    rows = sum(lengths) + spare_rows
    wide = torch.randn((2, rows, problem.kv_heads + 1, problem.head_dim), generator=generator).to(of)
    kept = {"k_out": wide[0, :, 1:], "v_out": wide[1, :, 1:]}
    if not dequantise and problem.kv_scale == "per_token_head":
        planes = torch.rand((2, problem.kv_heads, rows + 2), generator=generator)
        kept |= {"k_scale_out": planes[0, :, :rows], "v_scale_out": planes[1, :, :rows]}
    return Case(
        name=name,
        problem=problem,
        arguments={
            "k_cache": k_cache,
            "v_cache": v_cache,
            "block_table": table[:, :width],
            "starts": torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32),
            **cache_inputs.scales(problem, pages, generator),
            **kept,
        },
        outputs=tuple(kept),
        zero_rows=(),
        tolerances="awkward",
        seed=seed,
        kept=tuple(kept),
        exact=tuple(kept),
    )


OP = KvGather()
