"""What the cache ops share beside their inputs: their problems, launch options and the numbers of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from m3gen.ops.base import Cache, decode_problem
from m3gen.space import Constraint, Parameter, PowerOfTwo
from m3gen.spec import CONTEXT_BUCKETS, Problem, Shard, dtype
from m3gen.targets import Device, Vendor, architecture

Values = Mapping[str, Any]

# fp32 elements of a tile in one lane: beyond it, tiles that are alive together no longer fit the registers.
_MOST_PER_LANE = 32


def cache_problem(op: str, device: Device, shard: Shard, cache: Cache) -> Problem:
    """A cache op of one rank: it knows tokens, not requests, so the query length is always 1."""
    return decode_problem(op, device, shard, cache, query_len=1)


def without_context(problem: Problem) -> Problem:
    """For ops whose work does not grow with the context."""
    return replace(problem, context=CONTEXT_BUCKETS[0])


def num_warps(device: Device, default: int) -> Parameter:
    """Up to 512 threads: a memory-bound kernel needs no larger workgroup to fill a compute unit."""
    most = 512 // device.architecture.wave_size
    return PowerOfTwo("num_warps", 1, most, default=default)


def lane_constraints(
    device: Device, head_dim: int, *, items: tuple[str, ...], loaded: str | None = None
) -> list[Constraint]:
    """A tile is the product of the parameters `items`, heads of `head_dim` elements: no lane without an element,
    none with more than it can hold. On AMD no loads of less than 4 bytes a lane where the tile is of dtype `loaded`: a
    wave would read one line, which predict-amd-4 takes for a lookup, and such tiles won for it by up to 0.6 us."""
    wave = device.architecture.wave_size

    def per_lane(c: Values) -> float:
        elements = head_dim
        for name in items:
            elements *= c[name]
        return float(elements / (wave * c["num_warps"]))

    least = 4 / dtype(loaded).bytes if loaded and device.architecture.vendor is Vendor.AMD else 0.0
    return [
        Constraint(
            "narrow_loads",
            (*items, "num_warps"),
            lambda c: per_lane(c) >= least,
            "a lane would load less than 4 bytes of a tile",
        ),
        Constraint("idle_lanes", (*items, "num_warps"), lambda c: per_lane(c) >= 1, "lanes without an element"),
        Constraint(
            "lane_elements",
            (*items, "num_warps"),
            lambda c: per_lane(c) <= _MOST_PER_LANE,
            f"a lane would hold more than {_MOST_PER_LANE} elements of a tile",
        ),
    ]


def dtypes(problem: Problem) -> dict[str, str | int | float]:
    """The flags of the dtypes. The 8-bit float is the cache's, or the architecture's where the cache has none."""
    q, kv = dtype(problem.q_dtype), dtype(problem.kv_dtype)
    fp8 = kv if kv.is_fp8 else dtype(architecture(problem.arch).fp8)
    return {
        "Q_DTYPE": q.name,
        "Q_TORCH": q.torch_name,
        "KV_DTYPE": kv.name,
        "KV_TORCH": kv.torch_name,
        "KV_SCALE": problem.kv_scale,
        "FP8_DTYPE": fp8.name,
        "FP8_TORCH": fp8.torch_name,
        "FP8_MAX": fp8.max,
        "HEAD_DIM": problem.head_dim,
        "PAGE": problem.page_size,
    }
