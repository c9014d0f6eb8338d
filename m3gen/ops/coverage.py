"""The problems that stand for all an op serves on a device: what is verified when everything is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from m3gen.ops.base import Cache, Op
from m3gen.spec import KV_SCALES, MINIMAX_M3, Problem
from m3gen.targets import Device

# Ops to which query heads are nothing: shards that differ in their groups alone are one problem.
_WITHOUT_GROUPS = ("kv_convert", "kv_copy", "kv_gather", "kv_insert", "kv_zero")
# (rows, context): few and many rows, few and many blocks. Defaults look at both.
LOADS = ((1, 8192), (1, 131072), (256, 131072))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which problems of an op are made: shards by their tensor-parallel ranks, and loads.

    `all_dtypes`: shards with every dtype and every kind of scales. `usual_dtypes`: shards with bf16 and with fp8
    under one scale. `long_queries`: of these shards those whose usual dtypes come with query length 4 too.
    """

    all_dtypes: tuple[int, ...]
    usual_dtypes: tuple[int, ...]
    long_queries: tuple[int, ...]
    loads: tuple[tuple[int, int], ...]

    def problems(self, ops: Iterable[Op], device: Device) -> Iterator[Problem]:
        """Each problem once, folded by its op."""
        found: dict[Problem, Problem] = {}
        for op in ops:
            for ranks, cache, query_len in self._variants(device):
                if (problem := _problem(op, device, ranks, cache, query_len)) is None:
                    continue
                for rows, context in self.loads:
                    load = op.canonical(problem.with_load(max(rows, problem.query_len), context))
                    found.setdefault(replace(load, group_size=1) if op.name in _WITHOUT_GROUPS else load, load)
        return iter(found.values())

    def _variants(self, device: Device) -> Iterator[tuple[int, Cache, int]]:
        usual = usual_caches(device)
        for ranks in (*self.all_dtypes, *self.usual_dtypes):
            for cache in every_cache(device) if ranks in self.all_dtypes else usual:
                yield ranks, cache, 1
                if ranks in self.long_queries and cache in usual:
                    yield ranks, cache, 4


# TP 2 has two KV heads, 8 and 16 have groups of 8 and of 4 query heads.
ALL = Coverage(all_dtypes=(4,), usual_dtypes=(2, 8, 16), long_queries=(4, 16), loads=LOADS)
QUICK = Coverage(all_dtypes=(), usual_dtypes=(4,), long_queries=(), loads=LOADS[:1])


def usual_caches(device: Device) -> tuple[Cache, ...]:
    return Cache("bf16"), Cache(device.architecture.fp8, "scalar")


def every_cache(device: Device) -> tuple[Cache, ...]:
    """Every dtype in which a cache is kept on the device, fp8 with every kind of scales."""
    unscaled = tuple(Cache(name) for name in ("bf16", "fp16", "fp32"))
    return (*unscaled, *(Cache(device.architecture.fp8, scale) for scale in KV_SCALES))


def _problem(op: Op, device: Device, ranks: int, cache: Cache, query_len: int) -> Problem | None:
    """The op's problem; beside an fp16 or fp32 cache the model is of that dtype too."""
    problem = op.problem(device, MINIMAX_M3.shard(ranks), cache, query_len)
    if problem is not None and cache.dtype in ("fp16", "fp32") and problem.kv_dtype == cache.dtype:
        return replace(problem, q_dtype=cache.dtype)
    return problem
