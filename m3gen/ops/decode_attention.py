"""What `sparse_decode` and `dense_decode` have in common: tunables of attend and merge, flags, work, bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from m3gen.ops import launch_space
from m3gen.ops.base import Tolerance, Work
from m3gen.ops.powers import power_of_two_at_least
from m3gen.space import Choice, Config, Constraint, Flag, Ordinal, Parameter
from m3gen.spec import Problem, dtype
from m3gen.targets import Device, architecture

Values = Mapping[str, Any]

_MAX_PACKED_ROWS = 8
# Elements of one lane's accumulator. Twice as many leave no registers for the scores: the compiler spills, and
# on tiles much larger it does not come back (see `launch_space`).
_MAX_ACCUMULATOR = 128


def packed_counts(problem: Problem) -> tuple[int, ...]:
    """How many query rows of one request a tile can hold: divisors of their number."""
    return tuple(n for n in range(1, _MAX_PACKED_ROWS + 1) if problem.query_len % n == 0)


def packing(problem: Problem) -> list[Parameter]:
    """`rows_packed`, where a request has several query rows."""
    if problem.query_len == 1:
        return []
    doc = "query rows of one request in one tile"
    return [Ordinal("rows_packed", packed_counts(problem), default=1, doc=doc)]


def sides(problem: Problem) -> list[Parameter]:
    """Which side of K and of V is contiguous in a tile, where it matters: AMD's LDS has up to 16 lanes at one bank
    when rows are transposed."""
    if not launch_space.is_amd(problem):
        return []
    doc = "loaded [tokens, head_dim] and transposed, or [head_dim, tokens]: another layout in shared memory"
    choices = ("rows", "columns")
    return [
        Choice("keys_as", choices, default="columns", active=lambda c: c["heads_in"] == "m", doc=f"K {doc}"),
        Choice("values_as", choices, default="columns", active=lambda c: c["heads_in"] == "n", doc=f"V {doc}"),
    ]


def structure(problem: Problem, is_split: Callable[[Values], bool]) -> list[Parameter]:
    """How a tile is worked and how splits are merged; `is_split` says whether there are any."""
    return [
        Choice("heads_in", ("m", "n"), default="m", doc="which side of the matrix unit the heads take"),
        *sides(problem),
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


def constraints(problem: Problem, device: Device) -> list[Constraint]:
    """What an attend over tiles of `tile_n` tokens cannot launch, or would only lose by."""
    wave = device.architecture.wave_size
    bytes_per_token = problem.head_dim * dtype(problem.kv_dtype).bytes
    packed: tuple[str, ...] = ("rows_packed",) if problem.query_len > 1 else ()

    def tile_m(c: Values) -> int:
        return max(16, power_of_two_at_least((c["rows_packed"] if packed else 1) * problem.group_size))

    return [
        Constraint(
            "load_width",
            ("tile_n", "num_warps"),
            lambda c: c["tile_n"] * bytes_per_token >= 16 * wave * c["num_warps"],
            "a lane would load less than 16 bytes of a tile",
        ),
        Constraint(
            "accumulator",
            ("num_warps", *packed),
            lambda c: tile_m(c) * problem.head_dim <= _MAX_ACCUMULATOR * wave * c["num_warps"],
            f"a lane would accumulate more than {_MAX_ACCUMULATOR} elements",
        ),
        *launch_space.constraints(device, tile_m=tile_m, tile_m_needs=packed, bytes_per_token=bytes_per_token),
    ]


def variant(problem: Problem) -> dict[str, str | int | bool]:
    """The problem's dtypes and shape as the templates know them."""
    return {
        "Q_DTYPE": problem.q_dtype,
        "Q_TORCH": dtype(problem.q_dtype).torch_name,
        "Q_FP32": problem.q_dtype == "fp32",
        "KV_DTYPE": problem.kv_dtype,
        "KV_TORCH": dtype(problem.kv_dtype).torch_name,
        "KV_CONVERT": problem.kv_dtype != problem.q_dtype,
        "KV_SCALE": problem.kv_scale,
        "HEAD_DIM": problem.head_dim,
        "PAGE": problem.page_size,
        "AMD": launch_space.is_amd(problem),
    }


def flags(problem: Problem, config: Config) -> dict[str, Any]:
    """The config as the templates' flags, every one of them set."""
    pack = config.get("rows_packed", 1)
    return {
        "TILE_N": config["tile_n"],
        "SPLITS": config["splits"],
        "PAGE_SPLITS": config.get("page_splits", 1),
        "HEADS_IN": config["heads_in"],
        "KEYS_AS": config.get("keys_as", "rows"),
        "VALUES_AS": config.get("values_as", "rows"),
        "FIRST_TILE": config.get("first_tile", "loop"),
        "LOADS": config["loads"],
        "MASKED_LOADS": config["masked_loads"],
        "PARTIAL_TORCH": dtype(str(config.get("partials", "fp32"))).torch_name,
        "MERGE": config.get("merge", "none"),
        "SCHEDULE": config.get("schedule", "default"),
        "MERGED_ELEMENTS": _MAX_ACCUMULATOR
        * architecture(problem.arch).wave_size
        * int(config.get("num_warps", 4)),
        "MERGE_WARPS": config.get("merge_warps", 1),
        "ROWS_PACKED": pack != 1,
        "PACK": pack,
        "OPTIONS": launch_space.options(config),
    }


def work(
    problem: Problem,
    config: Config,
    *,
    tokens: int,
    streamed_bytes: float,
    reread_bytes: float,
    loop_trips: float,
    lookups: float,
    idle: float = 0.0,
) -> tuple[Work, ...]:
    """The launches of a decode attention in which each query row attends to `tokens` tokens.

    `streamed_bytes`: pages and their scales, once. `reread_bytes`: what else is read beside queries and
    partial outputs: page lists, and pages that several programs want.
    """
    row_heads = problem.rows * problem.q_heads
    one_output = row_heads * problem.head_dim * dtype(problem.q_dtype).bytes
    splits = int(config["splits"]) * int(config.get("page_splits", 1))
    partial_bytes = dtype(str(config.get("partials", "fp32"))).bytes
    partials = splits * row_heads * (problem.head_dim * partial_bytes + 4) if splits > 1 else 0
    merged_here = config.get("merge") == "last"
    attend = Work(
        kernel=f"{problem.op}_attend",
        read_bytes=streamed_bytes + reread_bytes + one_output + (partials if merged_here else 0),
        written_bytes=(partials or one_output) + (one_output if merged_here else 0),
        streamed_bytes=streamed_bytes,
        flops=4.0 * tokens * problem.head_dim * row_heads,
        loop_trips=loop_trips,
        load_waits=1 if config["loads"] == "together" else 2,
        loads_ahead=int(config["num_stages"]) - 1,
        lookups=lookups,
        idle=idle,
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


def kv_bytes_per_token(problem: Problem) -> int:
    """K and V of one token of one KV head, with their scales where every token has its own."""
    scales = 8 if problem.kv_scale == "per_token_head" else 0
    return 2 * problem.head_dim * dtype(problem.kv_dtype).bytes + scales


def awkward(problem: Problem) -> Tolerance:
    """Bounds of both ops in every row, of its RMS: fp32 2e-6, fp16 1e-3, bf16 4e-3, and 3e-2 with an fp8 cache."""
    of_q = {"fp32": 2e-6, "fp16": 1e-3, "bf16": 4e-3}[problem.q_dtype]
    return Tolerance(row_rms=max(of_q, 3e-2) if dtype(problem.kv_dtype).is_fp8 else of_q, source="m3gen")
