"""`kv_copy`: whole pages to other pages of the same caches, with everything that belongs to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_space, launch_space, page_ops
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.cache_inputs import CacheLayout
from m3gen.space import Config, Space
from m3gen.spec import Problem, Shard
from m3gen.targets import Device, architecture

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class KvCopy:
    """pairs [n, 2] of source and target pages: afterwards each target holds what its source held, bit by bit, in
    k_cache, v_cache and, with scales per token and head, in both scale planes; index_pairs likewise in
    index_cache. A pair that names a page outside its cache is skipped; no other page is touched.

    No target may be a source or another target: the pairs are copied in no order. A page may be its own target.

    Problem: kv_heads; rows are pairs; group_size, query_len, topk and context do not matter.
    """

    name: str = "kv_copy"
    title: str = "Copy of pages within the caches: K, V, scales and index K."
    template: str = "kv_copy.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return cache_space.cache_problem(self.name, device, shard, cache)

    def canonical(self, problem: Problem) -> Problem:
        return cache_space.without_context(problem)

    def space(self, problem: Problem, device: Device) -> Space:
        return page_ops.space(problem, device, loaded=problem.kv_dtype)

    def default(self, problem: Problem, device: Device) -> Config:
        """The field copies pages with one program per page and layer, or with torch's index kernels; neither has
        constants to take over. This is the middle of the space."""
        return self.space(problem, device).default()

    def variant(self, problem: Problem) -> Mapping[str, Any]:
        return cache_space.dtypes(problem)

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return page_ops.flags(config, launch_space.options(config))

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        moved = problem.rows * page_ops.page_bytes(problem)
        return (
            Work(
                kernel="copy_pages",
                read_bytes=moved + problem.rows * 2 * 16,
                written_bytes=moved,
                streamed_bytes=moved,
                flops=0,
                loop_trips=page_ops.trips(problem, config),
                load_waits=2,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        import torch

        pairs = torch.empty((problem.rows, 2), dtype=torch.int64, device="meta")
        return {**page_ops.example_caches(problem), "pairs": pairs, "index_pairs": pairs}

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        q, fp8 = problem.q_dtype, architecture(problem.arch).fp8
        hostile = [[1, 3], [-1, 2], [4, -1], [5, 2], [1, 1 << 40], [0, 0]]
        lists = {"pairs": hostile, "index_pairs": [[1, 3], [4, 0]]}
        yield page_ops.case("shared with the index", problem, seed, lists, index_of=q)
        lists = {"pairs": [[4, 0]], "index_pairs": [[0, 1], [2, 4], [-1, 3]]}
        plain = CacheLayout(heads_first=False, interleaved=False)
        yield page_ops.case("plain layout", problem, seed, lists, layout=plain, index_of=fp8)
        yield page_ops.case("no index", problem, seed, {"pairs": [[2, 3]]})
        lists = {"pairs": [[2, 0]], "index_pairs": [[0, 2]]}
        far = CacheLayout(far=True)
        yield page_ops.case("page offset past 2^31", problem, seed, lists, layout=far, index_of=q, pages=3)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        expected = {}
        for name in case.outputs:
            before = case.arguments[name]
            is_plane = name.endswith("_scale")
            pages = before.unflatten(1, (-1, case.problem.page_size)).transpose(0, 1) if is_plane else before
            after = pages.clone()
            for source, target in case.arguments["index_pairs" if name == "index_cache" else "pairs"].tolist():
                if 0 <= source < len(pages) and 0 <= target < len(pages):
                    after[target] = pages[source]
            expected[name] = after.transpose(0, 1).flatten(1) if is_plane else after
        return expected

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Every output is exact."""
        return Tolerance(source="m3gen")


OP = KvCopy()
