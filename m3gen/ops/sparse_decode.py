"""`sparse_decode`: attention of each query row over the pages its top-k list selects, with split-K and merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import decode_inputs, launch_space
from m3gen.ops.base import Cache, Case, Tolerance, Work, decode_problem
from m3gen.space import Choice, Config, Constraint, Flag, Parameter, PowerOfTwo, Space
from m3gen.spec import CONTEXT_BUCKETS, Problem, Shard, bucket, dtype
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SparseDecode:
    """q [rows, q_heads, head_dim] against K and V [pages, kv_heads, page_size, head_dim] through
    topk_ids [kv_heads, rows, topk] and block_table [requests, max_blocks]; out like q.

    Row r belongs to request r // query_len and sees kv_len = max(seq_len - query_len + r % query_len + 1, 0)
    tokens. An entry that is negative or at or past ceil(kv_len / page_size) is neutral, wherever it stands; ids
    are distinct within a row. A row with nothing to attend to comes out zero. What lies in a page past kv_len
    never reaches the output, NaN included.
    """

    name: str = "sparse_decode"
    title: str = "Sparse GQA decode attention over selected KV pages."
    template: str = "sparse_decode.py.jinja"

    def space(self, problem: Problem, device: Device) -> Space:
        most_splits = _power_of_two_at_most(problem.topk)
        kv_bytes = dtype(problem.kv_dtype).bytes

        def is_split(c: Values) -> bool:
            return bool(c["splits"] > 1 or c.get("page_splits", 1) > 1)

        structure: list[Parameter] = [
            PowerOfTwo(
                "tile_n", 16, problem.page_size, default=problem.page_size, doc="tokens per loop iteration"
            ),
            PowerOfTwo("splits", 1, most_splits, default=1, doc="parts of the top-k list, one program each"),
            PowerOfTwo(
                "page_splits",
                1,
                4,
                default=1,
                active=lambda c: c["splits"] == most_splits,
                doc="parts of one page",
            ),
            Choice("heads_in", ("m", "n"), default="m", doc="which side of the matrix unit the heads take"),
            Choice("loads", ("together", "apart"), default="apart", doc="V requested with K, or after the scores"),
            Flag("masked_loads", default=True, doc="mask dead tokens in the load, or load whole tiles and select"),
            Choice(
                "partials",
                tuple(dict.fromkeys(("fp32", problem.q_dtype))),
                default=problem.q_dtype,
                active=is_split,
                doc="dtype of a split's output",
            ),
            Choice("merge", ("kernel", "last"), default="kernel", active=is_split, doc="who merges the splits"),
            Choice(
                "merge_warps",
                (1, 2, 4),
                default=4,
                active=lambda c: c.get("merge") == "kernel",
                doc="of the merge",
            ),
        ]

        def tile_m(c: Values) -> int:
            packed = c["rows_packed"] if problem.query_len > 1 else 1
            return max(16, _power_of_two_at_least(packed * problem.group_size))

        wave = device.architecture.wave_size
        constraints = [
            Constraint(
                "page_parts",
                ("tile_n", "page_splits"),
                lambda c: c["tile_n"] * c["page_splits"] <= problem.page_size,
                "a tile is larger than its part of the page",
            ),
            Constraint(
                "load_width",
                ("tile_n", "num_warps"),
                lambda c: c["tile_n"] * problem.head_dim * kv_bytes >= 16 * wave * c["num_warps"],
                "a lane would load less than 16 bytes of a tile",
            ),
            *launch_space.constraints(
                device,
                tile_m=tile_m,
                tile_m_needs=("rows_packed",) if problem.query_len > 1 else (),
                bytes_per_token=problem.head_dim * kv_bytes,
            ),
        ]
        if problem.query_len > 1:
            structure.insert(
                0, PowerOfTwo("rows_packed", 1, 8, default=1, doc="query rows of one request in one tile")
            )
            constraints.append(
                Constraint(
                    "rows_packed",
                    ("rows_packed",),
                    lambda c: problem.query_len % c["rows_packed"] == 0,
                    f"packed rows must divide the query length {problem.query_len}",
                )
            )
        return Space([*structure, *launch_space.parameters(device)], constraints)

    def default(self, problem: Problem, device: Device) -> Config:
        """vLLM's common sparse decode (vllm/models/minimax_m3/common/ops/sparse_attn.py): whole-page tiles,
        TARGET_GRID 256 programs, partials in the query's dtype, a merge kernel, Triton's default launch options.
        """
        programs = problem.rows * problem.kv_heads
        splits = _power_of_two_at_most(max(1, min(problem.topk, 256 // programs)))
        values: dict[str, Any] = {
            "tile_n": problem.page_size,
            "splits": splits,
            "page_splits": 1,
            "heads_in": "m",
            "loads": "apart",
            "masked_loads": True,
            "partials": problem.q_dtype,
            "merge": "kernel",
            "merge_warps": 4,
            "rows_packed": 1,
            **launch_space.field_default(device),
        }
        space = self.space(problem, device)
        known = {parameter.name for parameter in space.parameters}
        return space.canonical({name: value for name, value in values.items() if name in known})

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return decode_problem(self.name, device, shard, cache, query_len)

    def canonical(self, problem: Problem) -> Problem:
        """Past topk pages of context the work no longer grows."""
        enough = bucket(problem.topk * problem.page_size, CONTEXT_BUCKETS)
        return problem.with_load(problem.rows, min(problem.context, enough))

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        return {
            "Q_DTYPE": problem.q_dtype,
            "Q_TORCH": dtype(problem.q_dtype).torch_name,
            "Q_FP32": problem.q_dtype == "fp32",
            "KV_DTYPE": problem.kv_dtype,
            "KV_TORCH": dtype(problem.kv_dtype).torch_name,
            "KV_FP8": dtype(problem.kv_dtype).is_fp8,
            "KV_SCALE": problem.kv_scale,
            "HEAD_DIM": problem.head_dim,
            "PAGE": problem.page_size,
            "TOPK": problem.topk,
            "TOPK_CAP": _power_of_two_at_least(problem.topk),
        }

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        pack = config.get("rows_packed", 1)
        return {
            "TILE_N": config["tile_n"],
            "SPLITS": config["splits"],
            "PAGE_SPLITS": config.get("page_splits", 1),
            "HEADS_IN": config["heads_in"],
            "LOADS": config["loads"],
            "MASKED_LOADS": config["masked_loads"],
            "PARTIAL_TORCH": dtype(str(config.get("partials", "fp32"))).torch_name,
            "MERGE": config.get("merge", "none"),
            "MERGE_WARPS": config.get("merge_warps", 1),
            "ROWS_PACKED": pack != 1,
            "PACK": pack,
            "OPTIONS": launch_space.options(config),
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        q_bytes, kv_bytes = dtype(problem.q_dtype).bytes, dtype(problem.kv_dtype).bytes
        splits = int(config["splits"]) * int(config.get("page_splits", 1))
        pack = int(config.get("rows_packed", 1))
        tokens = min(problem.context, problem.topk * problem.page_size)
        row_heads = problem.rows * problem.q_heads
        pages = problem.rows * problem.kv_heads * tokens * 2 * problem.head_dim * kv_bytes
        scales = problem.rows * problem.kv_heads * tokens * 8 if problem.kv_scale == "per_token_head" else 0
        lists = problem.rows * problem.kv_heads * problem.topk * 8
        one_output = row_heads * problem.head_dim * q_bytes
        partial_bytes = dtype(str(config.get("partials", "fp32"))).bytes
        partials = splits * row_heads * (problem.head_dim * partial_bytes + 4) if splits > 1 else 0
        merged_here = config.get("merge") == "last"
        tiles = problem.page_size // (int(config["tile_n"]) * int(config.get("page_splits", 1)))
        attend = Work(
            kernel="sparse_decode_attend",
            read_bytes=pages + scales + lists + one_output + (partials if merged_here else 0),
            written_bytes=(partials or one_output) + (one_output if merged_here else 0),
            streamed_bytes=pages + scales,
            flops=4.0 * tokens * problem.head_dim * row_heads,
            loop_trips=-(-problem.topk // int(config["splits"])) * tiles * pack,
            load_waits=1 if config["loads"] == "together" else 2,
            loads_ahead=int(config["num_stages"]) - 1,
            lookups=2.0 / tiles,
        )
        if config.get("merge") != "kernel":
            return (attend,)
        merge = Work(
            kernel="merge_splits",
            read_bytes=partials,
            written_bytes=one_output,
            streamed_bytes=0,
            flops=0,
            loop_trips=1,
        )
        return (attend, merge)

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        return decode_inputs.example(problem, self.flags(problem, config))

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        return decode_inputs.cases(problem, self.flags(problem, config), seed)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return {"out": decode_inputs.reference(case.problem, case.arguments)}

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Bounds of the op: bf16 4e-3 and fp8 3e-2 in every row; on the peers' grid vLLM's own bounds
        (tests/kernels/attention/test_minimax_m3.py: mean 2.5e-4, max 1.7e-2)."""
        row_rms = {"fp32": 2e-6, "fp16": 1e-3, "bf16": 4e-3}[problem.q_dtype]
        if dtype(problem.kv_dtype).is_fp8:
            row_rms = max(row_rms, 3e-2)
        if grid == "peers":
            return Tolerance(row_rms=row_rms, mean_abs=2.5e-4, max_abs=1.7e-2, source="vLLM test_minimax_m3.py")
        return Tolerance(row_rms=row_rms, source="m3gen")


def _power_of_two_at_most(value: int) -> int:
    return 1 << (value.bit_length() - 1)


def _power_of_two_at_least(value: int) -> int:
    return 1 << (value - 1).bit_length()


OP = SparseDecode()
