"""`kv_insert`: rows of K, V and index K into the slots of their caches, cast or quantised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_inputs, cache_space, launch_space
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.cache_inputs import CacheLayout
from m3gen.ops.powers import power_of_two_at_least
from m3gen.space import Choice, Config, PowerOfTwo, Space
from m3gen.spec import Problem, Shard, dtype
from m3gen.targets import Device, Vendor, architecture

if TYPE_CHECKING:
    import torch

_FIELD_TILE = 2048


@dataclass(frozen=True, slots=True)
class KvInsert:
    """k and v [rows, kv_heads, head_dim] into the slots of k_cache and v_cache [pages, kv_heads, page, head_dim];
    where there is an index, index_k [rows, head_dim] into index_cache [pages, page, head_dim].

    A stored value is the row's over the scale that a reader multiplies by, in fp32, rounded once to the cache's
    dtype and saturated where that is an 8-bit float. `scalar`: the scale is given. `per_token_head`: it is the
    head's largest magnitude over the largest number of the dtype, 1 where that is 0, and is stored in the scale
    plane. Index K has no scale. NaN is stored as NaN. A row whose slot is negative, or past the cache, is not
    inserted; no other slot is touched.

    Problem: kv_heads; rows are tokens; group_size, query_len, topk and context do not matter.
    """

    name: str = "kv_insert"
    title: str = "Insert of K, V and index K rows into a paged cache."
    template: str = "kv_insert.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return cache_space.cache_problem(self.name, device, shard, cache)

    def canonical(self, problem: Problem) -> Problem:
        return cache_space.without_context(problem)

    def space(self, problem: Problem, device: Device) -> Space:
        most_heads = min(16, power_of_two_at_least(problem.kv_heads))
        return Space(
            [
                Choice(
                    "sides",
                    ("together", "apart"),
                    default="together",
                    doc="K, V and index K in one program, or one each",
                ),
                PowerOfTwo("rows", 1, 16, default=1, doc="rows of one program"),
                PowerOfTwo("heads", 1, most_heads, default=most_heads, doc="heads of one tile"),
                cache_space.num_warps(device, default=1),
            ],
            cache_space.lane_constraints(device, problem.head_dim, items=("rows", "heads")),
        )

    def default(self, problem: Problem, device: Device) -> Config:
        """vLLM's reshape_and_cache_flash (v1/attention/ops/triton_reshape_and_cache_flash.py): a program per row,
        tiles of min(2048, next power of two) elements, 8 warps on HIP and 16 on CUDA. Warps are cut to those
        that have an element each lane; its pipeline stages act on loops, of which there are none."""
        heads = min(_FIELD_TILE // problem.head_dim, power_of_two_at_least(problem.kv_heads))
        field = 8 if device.architecture.vendor is Vendor.AMD else 16
        warps = max(1, min(field, heads * problem.head_dim // device.architecture.wave_size))
        return self.space(problem, device).canonical(
            {"sides": "together", "rows": 1, "heads": heads, "num_warps": warps}
        )

    def variant(self, problem: Problem) -> Mapping[str, Any]:
        return cache_space.dtypes(problem)

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return {
            "SIDES": config["sides"],
            "ROWS": config["rows"],
            "HEADS": config["heads"],
            "OPTIONS": launch_space.options(config),
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """The rows have just been written by the projection, so none of them stream from memory."""
        elements = 2 * problem.kv_heads * problem.head_dim
        q_bytes, kv_bytes = dtype(problem.q_dtype).bytes, dtype(problem.kv_dtype).bytes
        index = problem.head_dim * q_bytes
        scales = 2 * problem.kv_heads * 4 if problem.kv_scale == "per_token_head" else 0
        return (
            Work(
                kernel="insert_kv",
                read_bytes=problem.rows * (elements * q_bytes + index + 2 * 8),
                written_bytes=problem.rows * (elements * kv_bytes + index + scales),
                streamed_bytes=0,
                flops=0,
                loop_trips=1,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        """K and V as slices of a fused row, index cache in the model's dtype."""
        import torch

        def empty(*shape: int, of: torch.dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=of, device="meta")

        rows, dim, q = problem.rows, problem.head_dim, dtype(problem.q_dtype).torch()
        pages = cache_inputs.real_pages(problem)
        fused = empty(rows, problem.q_heads + 2 * problem.kv_heads + 1, dim, of=q)
        first = problem.q_heads
        k_cache, v_cache = cache_inputs.real_caches(problem)
        return {
            "k": fused[:, first : first + problem.kv_heads],
            "v": fused[:, first + problem.kv_heads : -1],
            "k_cache": k_cache,
            "v_cache": v_cache,
            "slot_mapping": empty(rows, of=torch.int64),
            "index_k": fused[:, -1],
            "index_cache": empty(pages, problem.page_size, dim, of=q),
            "index_slot_mapping": empty(rows, of=torch.int64),
            **cache_inputs.real_scales(problem),
        }

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        page, q = problem.page_size, problem.q_dtype
        fp8 = architecture(problem.arch).fp8
        last = 3 * page - 1
        hostile = [page - 1, -1, page, last, -(1 << 40), last + 1, 5]
        yield _case("slots and values", problem, seed, hostile, index_of=q, hostile=True)
        plain = CacheLayout(heads_first=False, interleaved=False)
        yield _case("plain layout", problem, seed, [2, -1, page + 7], layout=plain)
        far = CacheLayout(far=True)
        yield _case("page offset past 2^31", problem, seed, [2 * page + 3], layout=far, index_of=fp8)
        yield _case("many rows", problem, seed, list(range(page - 8, page + 9)), index_of=fp8)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        p, a = case.problem, case.arguments
        expected = {}
        for side in "kv":
            rows, scale = a[side], a.get(f"{side}_scale", 1.0)
            if p.kv_scale == "per_token_head":
                made = cache_inputs.own_scale(rows.float(), p.kv_dtype)
                expected[f"{side}_scale"] = cache_inputs.inserted(scale.T, made, a["slot_mapping"]).T
                scale = made[..., None]
            stored = cache_inputs.quantised(rows, scale, p.kv_dtype)
            expected[f"{side}_cache"] = cache_inputs.into_pages(a[f"{side}_cache"], stored, a["slot_mapping"])
        if "index_cache" in a:
            cache = a["index_cache"]
            stored = cache_inputs.quantised(a["index_k"], 1.0, cache_inputs.name_of(cache.dtype))
            slots = a["index_slot_mapping"]
            expected["index_cache"] = cache_inputs.into_pages(cache[:, None], stored[:, None], slots)[:, 0]
        return expected

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Every output is exact: torch's own cast of the saturated fp32 quotient."""
        return Tolerance(source="m3gen")


def _case(
    name: str,
    problem: Problem,
    seed: int,
    slots: Sequence[int],
    *,
    layout: CacheLayout = CacheLayout(),  # noqa: B008
    index_of: str = "",
    hostile: bool = False,
) -> Case:
    """Rows are slices of one fused buffer; without `index_of` there is no index."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    rows, heads, dim = len(slots), problem.kv_heads, problem.head_dim
    fused = torch.randn((rows, 2 * heads + 3, dim), generator=generator)
    if hostile:  # beyond any 8-bit float, near its ends and its least numbers, zeros and signed zeros
        fused[3] *= 30000
        fused[0] *= 2.0 ** torch.randint(-14, 12, (dim,), generator=generator)
        fused[2] = torch.where(fused[2] < 0, -0.0, 0.0)
    fused = fused.to(dtype(problem.q_dtype).torch())
    k_cache, v_cache = cache_inputs.kv_caches(problem, 3, layout, generator)
    kept = {"k_cache": k_cache, "v_cache": v_cache}
    arguments: dict[str, Any] = {
        "k": fused[:, :heads],
        "v": fused[:, heads : 2 * heads],
        "slot_mapping": torch.tensor(slots),
    }
    if index_of:
        kept["index_cache"] = cache_inputs.index_cache(problem, 3, index_of, generator, far=layout.far)
        arguments |= {"index_k": fused[:, -1], "index_slot_mapping": torch.tensor([-1, *slots[:0:-1]])}
    scales = cache_inputs.scales(problem, 3, generator)
    if problem.kv_scale == "per_token_head":
        kept |= scales
    return Case(
        name=name,
        problem=problem,
        arguments={**arguments, **kept, **scales},
        outputs=tuple(kept),
        zero_rows=(),
        tolerances="awkward",
        seed=seed,
        kept=tuple(kept),
        exact=tuple(kept),
    )


OP = KvInsert()
