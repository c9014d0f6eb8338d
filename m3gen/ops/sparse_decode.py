"""`sparse_decode`: attention of each query row over the pages its top-k list selects, with split-K and merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from m3gen.ops import decode_attention, decode_inputs, launch_space
from m3gen.ops.base import Cache, Case, Tolerance, Work, decode_problem
from m3gen.ops.decode_attention import Values
from m3gen.ops.powers import power_of_two_at_least, power_of_two_at_most
from m3gen.space import Choice, Config, Constraint, PowerOfTwo, Space
from m3gen.spec import CONTEXT_BUCKETS, Problem, Shard, bucket, dtype
from m3gen.targets import Device, Vendor

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class SparseDecode:
    """q [rows, q_heads, head_dim] against K and V [pages, kv_heads, page_size, head_dim] through
    topk_ids [kv_heads, rows, topk] and block_table [requests, max_blocks]; out like q.

    Row r belongs to request r // query_len and sees kv_len = max(seq_len - query_len + r % query_len + 1, 0)
    tokens. An entry that is negative or at or past ceil(kv_len / page_size) is neutral, wherever it stands, and
    so is one whose page is negative. A row with nothing to attend to comes out zero. What lies in a page past
    kv_len never reaches the output, NaN included. K and V are converted to q's dtype before the products.

    Ids are distinct within a row: `index_topk` gives them so. One that stands twice is attended to once or
    twice, as the variant has it, and changes no other row.
    """

    name: str = "sparse_decode"
    title: str = "Sparse GQA decode attention over selected KV pages."
    template: str = "sparse_decode.py.jinja"

    def space(self, problem: Problem, device: Device) -> Space:
        most_splits = power_of_two_at_most(problem.topk)
        page = problem.page_size

        def is_split(c: Values) -> bool:
            return bool(c["splits"] > 1 or c.get("page_splits", 1) > 1)

        def has_loop(c: Values) -> bool:
            """Over the lists of single rows, where each program has some of it, and more than a tile."""
            single = most_splits == problem.topk == c["splits"] and c["tile_n"] * c["page_splits"] == page
            even = problem.topk % c["splits"] == 0
            return even and not single and (problem.query_len == 1 or c["rows_packed"] == 1)

        parameters = [
            *decode_attention.packing(problem),
            PowerOfTwo("tile_n", 16, page, default=page, doc="tokens per loop iteration"),
            PowerOfTwo("splits", 1, most_splits, default=1, doc="parts of the top-k list, one program each"),
            PowerOfTwo(
                "page_splits",
                1,
                4,
                default=1,
                active=lambda c: c["splits"] == most_splits,
                doc="parts of one page",
            ),
            *decode_attention.structure(problem, is_split),
            Choice(
                "first_tile",
                ("loop", "apart"),
                default="loop",
                active=has_loop,
                doc="asked for before the queries are waited for, or in the loop like the others",
            ),
            *launch_space.parameters(device),
            *launch_space.schedules(device),
        ]
        page_parts = Constraint(
            "page_parts",
            ("tile_n", "page_splits"),
            lambda c: c["tile_n"] * c["page_splits"] <= page,
            "a tile is larger than its part of the page",
        )
        return Space(parameters, [page_parts, *decode_attention.constraints(problem, device)])

    def default(self, problem: Problem, device: Device) -> Config:
        """The field's, but on AMD unmasked half-page tiles that are not pipelined: with whole pages up to 173 scalar
        registers spill into vector lanes (Triton 3.9; docs/matrix.md)."""
        field = self.field(problem, device)
        if device.architecture.vendor is not Vendor.AMD:
            return field
        half = min(int(field["tile_n"]), problem.page_size // 2)
        calmer = {**field, "masked_loads": False, "num_stages": 1, "waves_per_eu": 1}
        space = self.space(problem, device)
        narrow = {**calmer, "tile_n": half, "first_tile": "loop"}
        return space.canonical(calmer if space.violations(narrow) else narrow)

    def field(self, problem: Problem, device: Device) -> Config:
        """vLLM's common sparse decode (vllm/models/minimax_m3/common/ops/sparse_attn.py): whole-page tiles,
        TARGET_GRID 256 programs, partials in the query's dtype, a merge kernel, Triton's default launch options.

        Where that spills or does not fit, the nearest that does: fp32, which nothing serves, in tiles of 16
        tokens; in fp8 on NVIDIA V is asked for together with K (6 to 8 registers spilled otherwise, Triton 3.9).
        """
        together = device.architecture.vendor is Vendor.NVIDIA and dtype(problem.kv_dtype).is_fp8
        programs = problem.rows * problem.kv_heads
        splits = power_of_two_at_most(max(1, min(problem.topk, 256 // programs)))
        values: dict[str, Any] = {
            "tile_n": 16 if problem.kv_dtype == "fp32" else problem.page_size,
            "splits": splits,
            "page_splits": 1,
            "heads_in": "m",
            "keys_as": "columns",
            "loads": "together" if together else "apart",
            "masked_loads": True,
            "partials": problem.q_dtype,
            "merge": "kernel",
            "merge_warps": 4,
            "rows_packed": 1,
            "first_tile": "loop",
            **launch_space.field_default(device),
        }
        return self.space(problem, device).canonical_of_known(values)

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return decode_problem(self.name, device, shard, cache, query_len)

    def canonical(self, problem: Problem) -> Problem:
        """Past topk pages of context the work no longer grows."""
        enough = bucket(problem.topk * problem.page_size, CONTEXT_BUCKETS)
        return problem.with_load(problem.rows, min(problem.context, enough))

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        lists = {"TOPK": problem.topk, "TOPK_CAP": power_of_two_at_least(problem.topk)}
        return {**decode_attention.variant(problem), **lists}

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        entries = -(-problem.topk // int(config["splits"]))
        cap = power_of_two_at_least(entries)
        return {**decode_attention.flags(problem, config), "ENTRIES": entries, "ENTRIES_CAP": cap}

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        tokens = min(problem.context, problem.topk * problem.page_size)
        tiles = problem.page_size // (int(config["tile_n"]) * int(config.get("page_splits", 1)))
        entries = -(-problem.topk // int(config["splits"]))
        selected = min(problem.topk, -(-problem.context // problem.page_size))
        row_heads = problem.rows * problem.kv_heads
        return decode_attention.work(
            problem,
            config,
            tokens=tokens,
            streamed_bytes=row_heads * tokens * decode_attention.kv_bytes_per_token(problem),
            reread_bytes=row_heads * problem.topk * 8,  # an id and its page
            loop_trips=min(entries, selected) * tiles * int(config.get("rows_packed", 1)),
            lookups=2.0 / tiles,
            idle=1 - -(-selected // entries) / int(config["splits"]),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        lists = {"topk_ids": decode_inputs.topk_example(problem)}
        return decode_inputs.example(problem, self.flags(problem, config)) | lists

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        """The awkward grid, then the peers' grid (vLLM tests/kernels/attention/test_minimax_m3.py)."""
        page, query_len, flags = problem.page_size, problem.query_len, self.flags(problem, config)

        def builder(layout: decode_inputs.Layout) -> decode_inputs.CaseBuilder:
            return decode_inputs.CaseBuilder(problem, flags, layout, seed, lists=True)

        usual = decode_inputs.Layout()
        # One below, at and one above a page; one token; padding; more pages than a list holds; stale list tails.
        # Several rows of one request straddle an edge by themselves.
        lengths = [0, problem.topk * page + query_len, page + 1]
        if query_len == 1:
            lengths = [1, page - 1, page, *lengths, 2 * page + 44]
        yield builder(usual).case("lengths", lengths, hostile=True)
        plain = decode_inputs.Layout(heads_first=False, interleaved=False, padded_rows=False)
        yield builder(plain).case("plain layout", [2 * page + 1, 0], hostile=True)
        far = replace(usual, first_page=decode_inputs.far_page(problem, usual))
        yield builder(far).case("page offset past 2^31", [page + 1])
        if query_len > 1:  # rows before the sequence began
            yield builder(usual).case("shorter than the query", [max(1, query_len - 2), page + 1])
        if query_len in (1, 4):
            # Every length of theirs; (130, 257) alone lies within 5 % of their mean, whatever the kernel.
            yield builder(decode_inputs.Layout()).case("peers HND 130-257-384", [130, 257, 384], grid="peers")
            layout = decode_inputs.Layout(heads_first=False)
            yield builder(layout).case("peers NHD 129-200-0", [129, 200, 0], grid="peers")

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return {"out": decode_inputs.reference(case.problem, case.arguments)}

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """On the peers' grid vLLM's own bounds besides, which are for unscaled caches
        (tests/kernels/attention/test_minimax_m3.py: mean 2.5e-4, max 1.7e-2)."""
        bounds = decode_attention.awkward(problem)
        if grid == "peers" and not dtype(problem.kv_dtype).is_fp8:
            return replace(bounds, mean_abs=2.5e-4, max_abs=1.7e-2, source="vLLM test_minimax_m3.py")
        return bounds


OP = SparseDecode()
