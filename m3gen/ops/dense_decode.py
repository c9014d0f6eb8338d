"""`dense_decode`: attention of each query row over its whole paged context, with split-K and merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from m3gen.ops import decode_attention, decode_inputs, launch_space
from m3gen.ops.base import Cache, Case, Tolerance, Work, decode_problem
from m3gen.space import Config, Constraint, PowerOfTwo, Space
from m3gen.spec import Problem, Shard, dtype
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch

_MAX_SPLITS = 256
_MIN_SPLIT_TOKENS = 64  # of a full context: with fewer, a program moves less than it writes and merges
_MAX_MERGE_ELEMENTS = 128  # of all splits' outputs, per lane of the merge


@dataclass(frozen=True, slots=True)
class DenseDecode:
    """q [rows, q_heads, head_dim] against K and V [pages, kv_heads, page_size, head_dim] through
    block_table [requests, max_blocks]; out like q. `topk` of the problem has no meaning.

    Row r belongs to request r // query_len and attends to its first max(seq_len - query_len + r % query_len + 1,
    0) tokens: causal, no window, no sinks, no softcap. A negative page holds nothing. A row with nothing to
    attend to comes out zero. What lies in a page past that length never reaches the output, NaN included. K and
    V are converted to q's dtype before the products.
    """

    name: str = "dense_decode"
    title: str = "Dense GQA decode attention over all KV pages of a request."
    template: str = "dense_decode.py.jinja"

    def space(self, problem: Problem, device: Device) -> Space:
        most_splits = min(_MAX_SPLITS, problem.context // _MIN_SPLIT_TOKENS)
        wave = device.architecture.wave_size
        parameters = [
            *decode_attention.packing(problem),
            PowerOfTwo("tile_n", 16, problem.page_size, default=16, doc="tokens per loop iteration"),
            PowerOfTwo("splits", 1, most_splits, default=1, doc="parts of a row's context, one program each"),
            *decode_attention.structure(problem, lambda c: bool(c["splits"] > 1)),
            *launch_space.parameters(device),
            *launch_space.schedules(device),
        ]
        merge_tile = Constraint(
            "merge_tile",
            ("splits", "merge_warps"),
            lambda c: c["splits"] * problem.head_dim <= _MAX_MERGE_ELEMENTS * wave * c["merge_warps"],
            "the merge would hold more partial outputs than a lane has registers",
        )
        return Space(parameters, [merge_tile, *decode_attention.constraints(problem, device)])

    def default(self, problem: Problem, device: Device) -> Config:
        """vLLM's Triton backend (vllm/v1/attention/ops/triton_unified_attention.py, backends/triton_attn.py):
        tiles of 16 tokens with segments and 32 without, 32 in fp8 either way; 16 rows of queries times heads in a
        block; for up to 128 programs 16 segments in fp32 with a reduction, else none; Triton's default launch
        options. On sm_100 fp8 that spills 2 registers (Triton 3.9), and V is asked for after the scores instead of
        together with K; on gfx942 a scale of each token spills 6 scalar ones but for waves_per_eu 1.
        """
        is_fp8 = dtype(problem.kv_dtype).is_fp8
        fits = [n for n in decode_attention.packed_counts(problem) if n * problem.group_size <= 16]
        requests = problem.rows // problem.query_len
        is_split = requests * problem.kv_heads <= 128 and problem.query_len <= 8
        values: dict[str, Any] = {
            "rows_packed": max(fits, default=1),
            "tile_n": 16 if is_split and not is_fp8 else 32,
            "splits": 16 if is_split else 1,
            "heads_in": "m",
            "keys_as": "columns",
            "loads": "apart" if is_fp8 and device.arch == "sm_100" else "together",
            "masked_loads": True,
            "partials": "fp32",
            "merge": "kernel",
            "merge_warps": 4,
            **launch_space.field_default(device),
        }
        if device.arch == "gfx942" and problem.kv_scale == "per_token_head":
            values["waves_per_eu"] = 1
        return self.space(problem, device).canonical_of_known(values)

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return decode_problem(self.name, device, shard, cache, query_len)

    def canonical(self, problem: Problem) -> Problem:
        """Every token of context is work: no two loads are alike."""
        return problem

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        return decode_attention.variant(problem)

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return decode_attention.flags(problem, config)

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """A page comes from memory once; the tiles of one request that want it again find it in a cache."""
        tile_n, requests = int(config["tile_n"]), problem.rows // problem.query_len
        row_tiles = problem.query_len // int(config.get("rows_packed", 1))
        pages = requests * problem.kv_heads * problem.context * decode_attention.kv_bytes_per_token(problem)
        table = requests * row_tiles * problem.kv_heads * -(-problem.context // problem.page_size) * 4
        return decode_attention.work(
            problem,
            config,
            tokens=problem.context,
            streamed_bytes=pages,
            reread_bytes=(row_tiles - 1) * pages + table,
            loop_trips=-(-problem.context // (tile_n * int(config["splits"]))),
            lookups=tile_n / problem.page_size,
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        return decode_inputs.example(problem, self.flags(problem, config))

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        """The awkward grid, then the decode lengths of vLLM's tests/kernels/attention/
        test_triton_unified_attention.py."""
        page, query_len, flags = problem.page_size, problem.query_len, self.flags(problem, config)

        def builder(layout: decode_inputs.Layout) -> decode_inputs.CaseBuilder:
            return decode_inputs.CaseBuilder(problem, flags, layout, seed, lists=False)

        usual = decode_inputs.Layout()
        # One below, at and one above a page; one token; padding; a hole. Several rows of one request straddle an
        # edge by themselves, and many splits leave few rows to run.
        edges = [query_len, page - 1, page] if query_len == 1 and flags["SPLITS"] <= 32 else []
        yield builder(usual).case("lengths", [*edges, page + 1, 0, 3 * page + 44], hostile=True)
        plain = decode_inputs.Layout(heads_first=False, interleaved=False, padded_rows=False)
        yield builder(plain).case("plain layout", [page, 0], hostile=True)
        far = replace(usual, first_page=decode_inputs.far_page(problem, usual))
        yield builder(far).case("page offset past 2^31", [page + 1])
        if query_len > 1:  # rows before the sequence began
            yield builder(usual).case("shorter than the query", [max(1, query_len - 2), page + 1])
        if query_len == 1:
            yield builder(usual).case("peers 523-37-2011", [523, 37, 2011], grid="peers")

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return {"out": decode_inputs.reference(case.problem, case.arguments)}

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """On the peers' grid the absolute part of vLLM's own bound besides (tests/kernels/attention/
        test_triton_unified_attention.py: 1.5e-2)."""
        bounds = decode_attention.awkward(problem)
        if grid == "peers" and not dtype(problem.kv_dtype).is_fp8:
            return replace(bounds, max_abs=1.5e-2, source="vLLM test_triton_unified_attention.py")
        return bounds


OP = DenseDecode()
