"""What the ops on whole pages share: their space, and their inputs as they hurt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_inputs, cache_space
from m3gen.ops.base import Case
from m3gen.ops.cache_inputs import CacheLayout
from m3gen.ops.powers import power_of_two_at_least
from m3gen.space import Config, Constraint, PowerOfTwo, Space
from m3gen.spec import Problem, dtype
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch

Values = Mapping[str, Any]


def space(problem: Problem, device: Device, *, loaded: str | None = None) -> Space:
    """Tiles of a page and programs over them: those of each head of K and V, and of the index. `loaded`: as in
    `cache_space.lane_constraints`."""

    def most_parts(c: Values) -> int:
        return power_of_two_at_least(problem.kv_heads + 1) * problem.page_size // int(c["tile_n"])

    return Space(
        [
            PowerOfTwo("tile_n", 8, problem.page_size, default=32, doc="tokens of one tile"),
            PowerOfTwo("parts", 1, 64, default=4, doc="programs of one page"),
            cache_space.num_warps(device, default=4),
        ],
        [
            Constraint(
                "idle_parts", ("tile_n", "parts"), lambda c: c["parts"] <= most_parts(c), "parts without a tile"
            ),
            *cache_space.lane_constraints(device, problem.head_dim, items=("tile_n",), loaded=loaded),
        ],
    )


def page_bytes(problem: Problem, *, index: bool = True) -> int:
    """K and V of a page, its scales, and its index K in the model's dtype."""
    kv = 2 * problem.kv_heads * problem.page_size * problem.head_dim * dtype(problem.kv_dtype).bytes
    scales = 2 * problem.kv_heads * problem.page_size * 4 if problem.kv_scale == "per_token_head" else 0
    return kv + scales + (problem.page_size * problem.head_dim * dtype(problem.q_dtype).bytes if index else 0)


def trips(problem: Problem, config: Config) -> int:
    """Tiles of K with those of V, or of the index, that one program visits."""
    tiles = (problem.kv_heads + 1) * problem.page_size // int(config["tile_n"])
    return -(-tiles // int(config["parts"]))


def flags(config: Config, options: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {"TILE_N": config["tile_n"], "PARTS": config["parts"], "OPTIONS": options}


def example_caches(problem: Problem) -> dict[str, torch.Tensor]:
    """Caches of over 2 GiB on the meta device with an index in the model's dtype, and the scale planes."""
    import torch

    k_cache, v_cache = cache_inputs.real_caches(problem)
    shape = (cache_inputs.real_pages(problem), problem.page_size, problem.head_dim)
    index = torch.empty(shape, dtype=dtype(problem.q_dtype).torch(), device="meta")
    planes = cache_inputs.real_scales(problem) if problem.kv_scale == "per_token_head" else {}
    return {"k_cache": k_cache, "v_cache": v_cache, "index_cache": index, **planes}


def case(
    name: str,
    problem: Problem,
    seed: int,
    lists: Mapping[str, Sequence[Any]],
    *,
    pages: int = 5,
    layout: CacheLayout = CacheLayout(),  # noqa: B008
    index_of: str = "",
) -> Case:
    """A case whose outputs are the caches themselves. `lists` are the page lists by argument name."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    k_cache, v_cache = cache_inputs.kv_caches(problem, pages, layout, generator)
    kept: dict[str, torch.Tensor] = {"k_cache": k_cache, "v_cache": v_cache}
    if index_of:
        kept["index_cache"] = cache_inputs.index_cache(problem, pages, index_of, generator, far=layout.far)
    if problem.kv_scale == "per_token_head":
        kept |= cache_inputs.scales(problem, pages, generator)
    tensors = {argument: torch.tensor(pages, dtype=torch.int64) for argument, pages in lists.items()}
    return Case(
        name=name,
        problem=problem,
        arguments={**kept, **tensors},
        outputs=tuple(kept),
        zero_rows=(),
        tolerances="awkward",
        seed=seed,
        kept=tuple(kept),
        exact=tuple(kept),
    )
