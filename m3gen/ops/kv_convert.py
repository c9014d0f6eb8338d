"""`kv_convert`: pages of one cache into pages of another that lies or rounds differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_inputs, cache_space, launch_space, page_ops
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.cache_inputs import CacheLayout
from m3gen.space import Config, PowerOfTwo, Space
from m3gen.spec import Problem, Shard, dtype
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch

_PART = 16  # tokens of a part in the page-16 layout
_OTHER_DIALECT = {"e4m3fn": "e4m3fnuz", "e4m3fnuz": "e4m3fn"}


@dataclass(frozen=True, slots=True)
class KvConvert:
    """pairs [n, 2] of a source and a target page: afterwards the target's K and V stand for what the source's did.

    A cache is named "pages", [pages, kv_heads, page, head_dim], or "page16", the form of AITER's paged attention
    with x elements in 16 bytes: K [pages, 8, kv_heads, head_dim / x, 16, x], V [pages, 8, kv_heads, 16 / x,
    head_dim, x]. Any strides but the last: [8 * pages, ...] as AITER has it is unflatten(0, (-1, 8)), and where K
    and V take turns in one plane, unflatten(0, (-1, 16)) and its first or second eight.

    One dtype on both sides: the bytes as they are, and scales per token and head along with them. From the model's
    dtype to an 8-bit cache: the value over its scale, as `kv_insert` stores it. Back: the value times its scale,
    in fp32, rounded once. Without scales the value itself, saturated. A pair with a page that its cache lacks is
    skipped; no other page is touched.

    An 8-bit cache also comes from the other e4m3 dialect, or goes to it. With scales a code keeps its bits, which
    stand for half as much in e4m3fnuz, and the scale takes the factor: planes are written with it, a scalar is the
    caller's to double or halve. That is exact but for +-240 of e4m3fnuz, which becomes +-448 instead of 480. Without
    scales the value stays: e4m3fnuz saturates at 240, e4m3fn rounds odd multiples of 2^-10 to even. NaN stays NaN,
    and e4m3fnuz has no -0.

    `source_v` and `target_v` None: a cache of keys alone. Index keys [pages, page, head_dim] are such a cache of one
    head and without scales, `unsqueeze(1)`.

    Problem: q_dtype of the model, kv_dtype and kv_scale of the cache, kv_heads; rows are pairs; group_size,
    query_len, topk and context do not matter.
    """

    name: str = "kv_convert"
    title: str = "Conversion of cache pages between layouts and dtypes."
    template: str = "kv_convert.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return cache_space.cache_problem(self.name, device, shard, cache)

    def canonical(self, problem: Problem) -> Problem:
        return cache_space.without_context(problem)

    def space(self, problem: Problem, device: Device) -> Space:
        return Space(
            [
                PowerOfTwo("tile_n", 8, problem.page_size, default=32, doc="tokens of one program"),
                cache_space.num_warps(device, default=4),
            ],
            cache_space.lane_constraints(device, problem.head_dim, items=("tile_n",), loaded=problem.kv_dtype),
        )

    def default(self, problem: Problem, device: Device) -> Config:
        """The field converts layouts with torch's permutes and copies; this is the middle of the space."""
        return self.space(problem, device).default()

    def variant(self, problem: Problem) -> Mapping[str, Any]:
        other = _OTHER_DIALECT.get(problem.kv_dtype)
        return {
            **cache_space.dtypes(problem),
            "OTHER_DTYPE": other or "",
            "OTHER_TORCH": dtype(other).torch_name if other else "",
        }

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return {"TILE_N": config["tile_n"], "OPTIONS": launch_space.options(config)}

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        moved = problem.rows * page_ops.page_bytes(problem, index=False)
        return (
            Work(
                kernel="convert_pages",
                read_bytes=moved + problem.rows * 16,
                written_bytes=moved,
                streamed_bytes=moved,
                flops=0,
                loop_trips=1,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        """From interleaved pages to the page-16 form in one dtype, both caches over 2 GiB."""
        import torch

        pages = cache_inputs.real_pages(problem)
        source_k, source_v = cache_inputs.real_caches(problem)
        k_shape, v_shape = page16_shapes(problem, pages, problem.kv_dtype)
        kv = dtype(problem.kv_dtype).torch()
        arguments: dict[str, Any] = {
            "source_k": source_k,
            "source_v": source_v,
            "target_k": torch.empty(k_shape, dtype=kv, device="meta"),
            "target_v": torch.empty(v_shape, dtype=kv, device="meta"),
            "pairs": torch.empty((problem.rows, 2), dtype=torch.int64, device="meta"),
            "source_layout": "pages",
            "target_layout": "page16",
        }
        scales = cache_inputs.real_scales(problem)
        if problem.kv_scale == "per_token_head":
            ends = ("source", "target")
            return arguments | {f"{end}_{name}": plane for end in ends for name, plane in scales.items()}
        return arguments | scales

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        model, stored = problem.q_dtype, problem.kv_dtype
        same = _Caches(stored, "pages"), _Caches(stored, "page16")
        yield _case("to page 16", problem, seed, *same)
        yield _case("from page 16", problem, seed, *reversed(same))
        nhd = CacheLayout(heads_first=False, interleaved=False)
        yield _case("interleaved to planes", problem, seed, same[0], _Caches(stored, "pages", nhd))
        far = CacheLayout(far=True)
        yield _case("page offset past 2^31", problem, seed, _Caches(stored, "pages", far), same[1])
        if stored != model:
            yield _case("quantise", problem, seed, _Caches(model, "pages"), same[1])
            yield _case("dequantise", problem, seed, same[1], _Caches(model, "pages", nhd))
        if other := _OTHER_DIALECT.get(stored):
            yield _case("from the other dialect", problem, seed, _Caches(other, "page16"), same[0])
            yield _case("to the other dialect", problem, seed, same[0], _Caches(other, "pages", nhd))
            if problem.kv_scale == "none":
                keys = _Caches(other, "pages")
                yield _case("index keys to the other dialect", problem, seed, same[0], keys, values=False)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        p, a = case.problem, case.arguments
        expected = {name: a[name].clone() for name in case.outputs}
        for side in "kv" if a["source_v"] is not None else "k":
            source = as_pages(p, a[f"source_{side}"], side)
            target = as_pages(p, expected[f"target_{side}"], side)
            for at, to in a["pairs"].tolist():
                if not (0 <= at < len(source) and 0 <= to < len(target)):
                    continue
                target[to] = self._converted(p, a, expected, side, source[at], target.dtype, at, to)
            expected[f"target_{side}"] = from_pages(p, target, side, expected[f"target_{side}"].dim())
        return expected

    def _converted(
        self,
        p: Problem,
        a: Mapping[str, Any],
        expected: Mapping[str, torch.Tensor],
        side: str,
        values: torch.Tensor,
        into: torch.dtype,
        at: int,
        to: int,
    ) -> torch.Tensor:
        """One page [kv_heads, page, head_dim] as the target keeps it; its scales go into `expected`."""
        import torch

        here, there = (slice(page * p.page_size, (page + 1) * p.page_size) for page in (at, to))
        scale: torch.Tensor = a.get(f"{side}_scale", torch.ones(1))
        if f"source_{side}_scale" in a:
            scale = a[f"source_{side}_scale"][:, here]
        if values.dtype != into and values.itemsize == into.itemsize == 1:
            factor = 1.0 if p.kv_scale == "none" else 0.5 if into == torch.float8_e4m3fnuz else 2.0
            if f"target_{side}_scale" in expected:
                expected[f"target_{side}_scale"][:, there] = scale / factor
            return cache_inputs.quantised(values.float() * factor, 1.0, cache_inputs.name_of(into))
        if f"target_{side}_scale" in expected:
            if values.dtype != into:
                scale = cache_inputs.own_scale(values.float(), p.kv_dtype)
            expected[f"target_{side}_scale"][:, there] = scale
        if values.dtype == into:
            return values
        per_token = scale[..., None] if p.kv_scale == "per_token_head" else scale
        if into == dtype(p.kv_dtype).torch():
            return cache_inputs.quantised(values, per_token, p.kv_dtype)
        return (values.float() * per_token).to(into)

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Every output is exact: the bytes, or torch's own cast of the fp32 quotient or product."""
        return Tolerance(source="m3gen")


def page16_shapes(problem: Problem, pages: int, of: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of K and V in the page-16 form."""
    x = 16 // dtype(of).bytes
    parts = (pages, problem.page_size // _PART, problem.kv_heads)
    return (*parts, problem.head_dim // x, _PART, x), (*parts, _PART // x, problem.head_dim, x)


def as_pages(problem: Problem, cache: torch.Tensor, side: str) -> torch.Tensor:
    """A cache of either layout as [pages, kv_heads, page, head_dim], by torch's own permutes."""
    if cache.dim() == 4:
        return cache.clone()
    # K [pages, part, head, d / x, token, x], V [pages, part, head, token / x, d, x] to page, head, part, token, d.
    order = (0, 2, 1, 4, 3, 5) if side == "k" else (0, 2, 1, 3, 5, 4)
    shape = (len(cache), problem.kv_heads, problem.page_size, problem.head_dim)
    return cache.permute(order).reshape(shape)


def from_pages(problem: Problem, pages: torch.Tensor, side: str, dims: int) -> torch.Tensor:
    """The inverse of `as_pages`."""
    if dims == 4:
        return pages
    x = 16 // pages.itemsize
    parts = (len(pages), problem.kv_heads, problem.page_size // _PART)
    if side == "k":
        return pages.reshape(*parts, _PART, problem.head_dim // x, x).permute(0, 2, 1, 4, 3, 5)
    return pages.reshape(*parts, _PART // x, x, problem.head_dim).permute(0, 2, 1, 3, 5, 4)


@dataclass(frozen=True, slots=True)
class _Caches:
    """What one end of a conversion is: dtype, named layout, and how plain pages lie."""

    of: str
    name: str
    layout: CacheLayout = field(default_factory=CacheLayout)

    def made(self, problem: Problem, pages: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """K and V full of finite numbers. Page-16 forms take turns in one plane, sixteen parts to a page."""
        import torch

        if self.name == "pages":
            return cache_inputs.kv_caches(problem, pages, self.layout, generator, self.of)
        k_shape, v_shape = page16_shapes(problem, pages, self.of)
        parts = k_shape[1]
        inner = k_shape[2] * k_shape[3] * k_shape[4] * k_shape[5]
        plane = torch.randn((pages, 2 * parts, inner), generator=generator).to(dtype(self.of).torch())
        k, v = plane[:, :parts], plane[:, parts:]
        return k.view(k_shape), v.view(v_shape)


def _case(
    name: str, problem: Problem, seed: int, source: _Caches, target: _Caches, *, values: bool = True
) -> Case:
    """Without `values` the caches are of keys alone."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    pages, target_pages = 3, 4
    source_k, source_v = source.made(problem, pages, generator)
    target_k, target_v = target.made(problem, target_pages, generator)
    if source.of == problem.q_dtype != problem.kv_dtype:  # beyond any 8-bit float, and a token of zeros
        source_k[2, :, 5] *= 30000
        source_v[2, :, 6] = 0
    elif source.of != target.of and dtype(target.of).is_fp8:  # every code, of NaN and of -0 too
        codes = torch.randint(0, 256, source_k[2].shape, generator=generator, dtype=torch.uint8)
        source_k[2] = codes.view(source_k.dtype)
    kept = {"target_k": target_k, "target_v": target_v}
    arguments: dict[str, Any] = {"source_k": source_k, "source_v": source_v}
    if not values:
        del kept["target_v"]
        arguments |= {"source_v": None, "target_v": None}
    if problem.kv_scale == "scalar":
        arguments |= cache_inputs.scales(problem, pages, generator)
    elif problem.kv_scale == "per_token_head":
        for end, of, count in (("source", source.of, pages), ("target", target.of, target_pages)):
            if dtype(of).is_fp8:
                planes = cache_inputs.scales(problem, count, generator)
                made = {f"{end}_{plane}": tensor for plane, tensor in planes.items()}
                arguments |= made
                kept |= made if end == "target" else {}
    return Case(
        name=name,
        problem=problem,
        arguments={
            **arguments,
            **kept,
            "pairs": torch.tensor([[2, 0], [0, 3], [-1, 1], [1, 4], [3, 1]]),
            "source_layout": source.name,
            "target_layout": target.name,
        },
        outputs=tuple(kept),
        zero_rows=(),
        tolerances="awkward",
        seed=seed,
        kept=tuple(kept),
        exact=tuple(kept),
    )


OP = KvConvert()
