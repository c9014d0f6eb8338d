"""`index_topk`: the best blocks of each row by their scores, the indexer's second half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import launch_space, topk_inputs
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.powers import power_of_two_at_most
from m3gen.space import Choice, Config, Constraint, Parameter, PowerOfTwo, Space
from m3gen.spec import MINIMAX_M3, Problem, Shard
from m3gen.targets import Device, Vendor

if TYPE_CHECKING:
    import torch

# A sorting network over more keys than this takes the compiler minutes and a wave hundreds of registers.
LARGEST_SORT = 1024
_LAUNCH_OPTIONS = ("num_warps", "num_stages", "waves_per_eu")


@dataclass(frozen=True, slots=True)
class IndexTopk:
    """scores fp32 [heads, rows, width] -> ids int32 [heads, rows, topk], 0-based logical blocks.

    Row r belongs to request r // query_len and sees num_blocks = ceil(kv_len / page_size) blocks, kv_len =
    max(seq_len - query_len + r % query_len + 1, 0). Of these it takes the first min(topk, num_blocks) in one total
    order: score descending, the lower id first among equal scores. NaN ranks below -inf, but never costs a block
    its place. +0 and -0 are equal. Scores past num_blocks are not read. The rest of the list is -1, on every
    write. Ids come in that order, or ascending.

    On request a page table of 16-token pages is written too: the full blocks in that order, then the newest
    visible block where it was selected, then zeros; and how many tokens its pages hold.

    Of a `Problem`, `group_size` is the index heads of a rank, `kv_heads` 1, both dtypes are those of the scores.
    """

    name: str = "index_topk"
    title: str = "Exact top-k of block scores, in one total order."
    template: str = "index_topk.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        """One problem, whatever the cache holds."""
        return Problem(
            op=self.name,
            arch=device.arch,
            compute_units=device.compute_units,
            q_dtype="fp32",
            kv_dtype="fp32",
            group_size=shard.index_heads,
            head_dim=MINIMAX_M3.index_dim,
            page_size=MINIMAX_M3.page_size,
            topk=MINIMAX_M3.topk,
            query_len=query_len,
        )

    def space(self, problem: Problem, device: Device) -> Space:
        cap = topk_inputs.capacity(problem.topk)
        structure: list[Parameter] = [
            Choice(
                "select", ("sort", "insert"), default="sort", doc="bitonic network, or the greatest one by one"
            ),
            PowerOfTwo("tile", max(64, cap), max(2048, cap), default=max(512, cap), doc="scores per iteration"),
            PowerOfTwo("splits", 1, 32, default=1, doc="programs a row"),
            Choice(
                "merge", ("kernel", "last"), default="last", active=lambda c: c["splits"] > 1, doc="who merges"
            ),
            Choice("merge_warps", (1, 2, 4), default=4, active=lambda c: c.get("merge") == "kernel"),
        ]
        launch = [p for p in launch_space.parameters(device) if p.name in _LAUNCH_OPTIONS]
        wave = device.architecture.wave_size
        constraints = [
            Constraint(
                "lanes",
                ("tile", "num_warps"),
                lambda c: c["tile"] >= wave * c["num_warps"],
                "a lane would be without a score",
            ),
            Constraint(
                "sort_size",
                ("select", "tile", "splits"),
                lambda c: c["select"] == "insert" or max(c["tile"], cap * c["splits"]) <= max(LARGEST_SORT, cap),
                f"a network over more than {LARGEST_SORT} keys",
            ),
        ]
        return Space([*structure, *launch], constraints)

    def default(self, problem: Problem, device: Device) -> Config:
        """The best predicted of a few, all by sorting networks in one launch.

        Up to 128 blocks one program takes a row in one tile, with as few waves as there are scores for: waves of
        one program meet in shared memory. More are shared by a few programs, whose last one merges, while there are
        compute units for these; of more rows each is one program's, in wide tiles.
        """
        blocks = -(-problem.context // problem.page_size)
        lists = problem.rows * problem.group_size
        amd = device.architecture.vendor is Vendor.AMD
        if blocks <= 64 and amd:
            tile, splits, warps = 64, 1, 1
        elif blocks <= 128:
            tile, splits, warps = 128, 1, 2 if amd else 4
        elif lists <= 64:
            tile, splits, warps = (128, 8, 2) if amd else (256, 4, 4)
        else:
            tile, splits, warps = (1024, 1, 8) if amd else (512, 2, 4)
        return self._sorted(problem, device, tile, splits, "last", warps, stages=1)

    def field(self, problem: Problem, device: Device) -> Config:
        """vLLM's selectors, both by sorting networks.

        NVIDIA (vllm/models/minimax_m3/common/ops/index_topk.py): TOPK_TARGET_GRID 512 programs over at most 16
        chunks, tiles of 256 with 8 warps, a merge kernel. AMD (vllm/models/minimax_m3/amd/ops/index_topk.py): the
        last program merges; up to 128 blocks one tile of 128 with 2 warps and one stage, else tiles of 512 with 8
        warps (4 on gfx950), a TOPK_TARGET_GRID of 64 programs over at most 16 chunks.
        """
        blocks = -(-problem.context // problem.page_size)
        programs = problem.rows * problem.group_size
        if device.architecture.vendor is Vendor.NVIDIA:
            tile, target, merge, warps, stages = 256, 512, "kernel", 8, 2
        elif blocks <= 128:
            tile, target, merge, warps, stages = 128, 1, "last", 2, 1
        else:
            tile, target, merge, warps, stages = 512, 64, "last", 4 if device.arch == "gfx950" else 8, 2
        return self._sorted(problem, device, tile, min(16, target // programs), merge, warps, stages)

    def _sorted(
        self, problem: Problem, device: Device, tile: int, splits: int, merge: str, warps: int, stages: int
    ) -> Config:
        """By sorting networks, `splits` being brought down to a power of two whose lists one network merges."""
        cap = topk_inputs.capacity(problem.topk)
        values: dict[str, Any] = {
            "select": "sort",
            "tile": max(tile, cap),
            "splits": power_of_two_at_most(max(1, min(splits, LARGEST_SORT // cap))),
            "merge": merge,
            "merge_warps": 4,
            **launch_space.field_default(device),
            "num_warps": warps,
            "num_stages": stages,
        }
        return self.space(problem, device).canonical_of_known(values)

    def canonical(self, problem: Problem) -> Problem:
        """Every load is its own: the work grows with the context."""
        return problem

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        return {
            "PAGE": problem.page_size,
            "TOPK": problem.topk,
            "CAP": topk_inputs.capacity(problem.topk),
            "AMD": launch_space.is_amd(problem),
        }

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return {
            "SELECT": config["select"],
            "TILE": config["tile"],
            "SPLITS": config["splits"],
            "MERGE": config.get("merge", "none"),
            "MERGE_WARPS": config.get("merge_warps", 1),
            "OPTIONS": launch_space.options(config),
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """The scores were written a moment ago: nothing streams from memory."""
        lists = problem.rows * problem.group_size
        blocks, splits = -(-problem.context // problem.page_size), int(config["splits"])
        tiles = -(-blocks // int(config["tile"]))
        partials = 8 * lists * min(splits, tiles) * topk_inputs.capacity(problem.topk) if splits > 1 else 0
        ids = 4 * lists * problem.topk
        merge = config.get("merge", "none")
        select = Work(
            kernel="select_blocks",
            read_bytes=4 * lists * blocks + (partials if merge == "last" else 0),
            written_bytes=partials + (ids if merge != "kernel" else 0),
            streamed_bytes=0,
            flops=0,
            loop_trips=-(-tiles // splits),
            loads_ahead=int(config["num_stages"]) - 1,
            idle=1 - min(tiles, splits) / splits,  # `live_splits` of the template
        )
        if merge != "kernel":
            return (select,)
        return (
            select,
            Work("merge_lists", read_bytes=partials, written_bytes=ids, streamed_bytes=0, flops=0, loop_trips=1),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        return topk_inputs.example(problem, self.flags(problem, config))

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        return topk_inputs.cases(problem, self.flags(problem, config), seed)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return topk_inputs.reference(case.problem, case.arguments)

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Integers are equal or wrong."""
        return Tolerance(source="exact")


OP = IndexTopk()
