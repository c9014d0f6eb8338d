"""`kv_zero`: fresh pages emptied, so that nothing of their last owner is ever read."""

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
class KvZero:
    """Afterwards the pages blocks [n] of k_cache and v_cache are zero in every bit, and index_blocks [m] of
    index_cache. Where scales are per token and head, theirs are 1, what a row of zeros gets when it is inserted:
    zero times whatever the plane held would be NaN if that was no number. A page outside the cache is skipped;
    no other page is touched.

    Problem: kv_heads; rows are pages; group_size, query_len, topk and context do not matter.
    """

    name: str = "kv_zero"
    title: str = "Emptying of fresh pages: K, V, scales and index K."
    template: str = "kv_zero.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return cache_space.cache_problem(self.name, device, shard, cache)

    def canonical(self, problem: Problem) -> Problem:
        return cache_space.without_context(problem)

    def space(self, problem: Problem, device: Device) -> Space:
        return page_ops.space(problem, device)

    def default(self, problem: Problem, device: Device) -> Config:
        """vLLM's block zeroer is a fill over the pages of all layers and has no constants that map onto tiles of
        one; this is the middle of the space."""
        return self.space(problem, device).default()

    def variant(self, problem: Problem) -> Mapping[str, Any]:
        return cache_space.dtypes(problem)

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return page_ops.flags(config, launch_space.options(config))

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        return (
            Work(
                kernel="zero_pages",
                read_bytes=problem.rows * 2 * 8,
                written_bytes=problem.rows * page_ops.page_bytes(problem),
                streamed_bytes=0,
                flops=0,
                loop_trips=page_ops.trips(problem, config),
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        import torch

        blocks = torch.empty(problem.rows, dtype=torch.int64, device="meta")
        return {**page_ops.example_caches(problem), "blocks": blocks, "index_blocks": blocks}

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        """The pages hold NaN, infinities and scales that are no numbers before."""
        q, fp8 = problem.q_dtype, architecture(problem.arch).fp8
        lists = {"blocks": [3, -1, 5, 1 << 40, 0], "index_blocks": [3, 1]}
        yield _poisoned(page_ops.case("stale pages", problem, seed, lists, index_of=q))
        plain = CacheLayout(heads_first=False, interleaved=False)
        lists = {"blocks": [4], "index_blocks": [0, 2, -1]}
        yield page_ops.case("plain layout", problem, seed, lists, layout=plain, index_of=fp8)
        yield page_ops.case("no index", problem, seed, {"blocks": [2]})
        lists = {"blocks": [2], "index_blocks": [2]}
        far = CacheLayout(far=True)
        yield page_ops.case("page offset past 2^31", problem, seed, lists, layout=far, index_of=q, pages=3)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        expected = {}
        for name in case.outputs:
            after = case.arguments[name].clone()
            is_plane = name.endswith("_scale")
            pages = after.unflatten(1, (-1, case.problem.page_size)).transpose(0, 1) if is_plane else after
            for page in case.arguments["index_blocks" if name == "index_cache" else "blocks"].tolist():
                if 0 <= page < len(pages):
                    pages[page] = 1.0 if is_plane else 0.0
            expected[name] = after
        return expected

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Every output is exact."""
        return Tolerance(source="m3gen")


def _poisoned(case: Case) -> Case:
    """Every second token no number, the scales among them."""
    for name in case.outputs:
        tensor = case.arguments[name]
        tensor[..., ::2] = float("nan")
        if name.endswith("_scale"):
            tensor[..., 1::4] = float("inf")
    return case


OP = KvZero()
