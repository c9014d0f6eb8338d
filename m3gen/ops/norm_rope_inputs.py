"""Inputs of `qk_norm_rope_insert`: as an engine sends them, and as they hurt; and the float64 answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_inputs
from m3gen.ops.base import Case
from m3gen.ops.cache_inputs import CacheLayout
from m3gen.spec import MINIMAX_M3, Problem, dtype
from m3gen.targets import architecture

if TYPE_CHECKING:
    import torch

_ROTARY = MINIMAX_M3.rotary_dim
_EPS = MINIMAX_M3.rms_eps
_POSITIONS = 96  # of the cases' tables


def example(problem: Problem) -> dict[str, Any]:
    """Launcher arguments of a sparse layer on the meta device, index cache in the model's dtype."""
    import torch

    rows, dim, q = problem.rows, problem.head_dim, dtype(problem.q_dtype).torch()
    index_heads = problem.kv_heads
    heads = problem.q_heads + 2 * problem.kv_heads + index_heads + 1
    pages = cache_inputs.real_pages(problem)

    def empty(*shape: int, of: torch.dtype = q) -> torch.Tensor:
        return torch.empty(shape, dtype=of, device="meta")

    k_cache, v_cache = cache_inputs.real_caches(problem)
    arguments: dict[str, Any] = {
        "qkv": empty(rows, heads * dim),
        "positions": empty(rows, of=torch.int64),
        "cos_sin_cache": empty(MINIMAX_M3.max_position, _ROTARY),
        "q_weight": empty(dim),
        "k_weight": empty(dim),
        "k_cache": k_cache,
        "v_cache": v_cache,
        "slot_mapping": empty(rows, of=torch.int64),
        "q_out": empty(rows, problem.q_heads, dim),
        "index_q_weight": empty(dim),
        "index_k_weight": empty(dim),
        "index_cache": empty(pages, problem.page_size, dim),
        "index_slot_mapping": empty(rows, of=torch.int64),
        "index_q_out": empty(rows, index_heads, dim),
        "eps": _EPS,
    }
    return arguments | cache_inputs.real_scales(problem)


def cases(problem: Problem, seed: int) -> Iterator[Case]:
    """Awkward slots, positions, values and layouts, then the small end of the peers' grid (tokens 1 and 7 of vLLM
    tests/kernels/test_fused_minimax_m3_qknorm_rope_kv_insert.py)."""
    page = problem.page_size
    fp8 = architecture(problem.arch).fp8
    last = 3 * page - 1
    plain = CacheLayout(heads_first=False, interleaved=False)
    hostile = [page - 1, -1, page, last, -(1 << 40), last + 1, 5]
    yield _case("slots and values", problem, seed, hostile, index_slots=[-1, *hostile[:0:-1]], hostile=True)
    yield _case("dense layer", problem, seed, [2, -1, page + 7], layout=plain, index=False)
    far = CacheLayout(far=True)
    yield _case("page offset past 2^31", problem, seed, [2 * page + 3], layout=far, index_of=fp8)
    yield peers_case(problem, 1, seed)
    yield peers_case(problem, 7, seed)


def peers_case(problem: Problem, tokens: int, seed: int) -> Case:
    """`tokens` rows in random slots; the index is an 8-bit float where the cache is one."""
    import torch

    pages = 2 + tokens // problem.page_size
    slots = torch.randperm(pages * problem.page_size, generator=torch.Generator().manual_seed(seed))[:tokens]
    kv = dtype(problem.kv_dtype)
    index_of = kv.name if kv.is_fp8 else problem.q_dtype
    name = f"peers {tokens} tokens"
    return _case(name, problem, seed, slots.tolist(), pages=pages, index_of=index_of, grid="peers")


def _case(
    name: str,
    problem: Problem,
    seed: int,
    slots: Sequence[int],
    *,
    index_slots: Sequence[int] | None = None,
    layout: CacheLayout = CacheLayout(),  # noqa: B008
    index: bool = True,
    index_of: str = "bf16",
    pages: int = 3,
    hostile: bool = False,
    grid: str = "awkward",
) -> Case:
    import torch

    made = _Rows(problem, len(slots), index, torch.Generator().manual_seed(seed))
    caches = made.caches(layout, index_of, pages)
    arguments = {**made.arguments(), **caches, "slot_mapping": torch.tensor(slots), "eps": _EPS}
    if index:
        arguments["index_slot_mapping"] = torch.tensor(slots if index_slots is None else index_slots)
        of = dtype(index_of if dtype(index_of).is_fp8 else problem.q_dtype).torch()
        arguments["index_q_out"] = torch.empty((len(slots), problem.kv_heads, problem.head_dim), dtype=of)
    if hostile:
        made.spoil(arguments)
    written = problem.kv_scale == "per_token_head"
    kept = tuple(n for n in caches if n.endswith("_cache") or (written and n.endswith("_scale")))
    return Case(
        name=name,
        problem=problem,
        arguments=arguments,
        outputs=("q_out", *(["index_q_out"] if index else []), *kept),
        zero_rows=(),
        tolerances=grid,
        seed=seed,
        kept=kept,
        exact=("v_cache", "v_scale") if written else ("v_cache",),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Tensors of one case with `rows` tokens; qkv is a slice of a wider buffer."""

    problem: Problem
    rows: int
    index: bool
    generator: torch.Generator

    def _randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        import torch

        return (torch.randn(shape, generator=self.generator) * scale).to(dtype(self.problem.q_dtype).torch())

    def arguments(self) -> dict[str, Any]:
        import torch

        p, dim = self.problem, self.problem.head_dim
        heads = p.q_heads + 2 * p.kv_heads + (p.kv_heads + 1 if self.index else 0)
        angles = torch.rand((_POSITIONS, _ROTARY // 2), generator=self.generator) * 6.283185307179586
        table = torch.cat([angles.cos(), angles.sin()], 1).to(dtype(p.q_dtype).torch())
        made: dict[str, Any] = {
            "qkv": self._randn(self.rows, heads * dim + 24)[:, : heads * dim],
            "positions": torch.randint(0, _POSITIONS, (self.rows,), generator=self.generator),
            "cos_sin_cache": table,
            "q_out": torch.empty((self.rows, p.q_heads, dim), dtype=table.dtype),
        }
        kinds = ("q", "k", "index_q", "index_k") if self.index else ("q", "k")
        return made | {f"{kind}_weight": self._randn(dim, scale=0.2) for kind in kinds}

    def caches(self, layout: CacheLayout, index_of: str, pages: int) -> dict[str, torch.Tensor]:
        """The caches and what goes with them."""
        p = self.problem
        k_cache, v_cache = cache_inputs.kv_caches(p, pages, layout, self.generator)
        made = {"k_cache": k_cache, "v_cache": v_cache}
        if self.index:
            made["index_cache"] = cache_inputs.index_cache(p, pages, index_of, self.generator, far=layout.far)
        made |= cache_inputs.scales(p, pages, self.generator)
        return made

    def spoil(self, arguments: Mapping[str, Any]) -> None:
        """Positions at and past the ends of the table; heads of zeros, of tiny and of huge numbers, some with a
        NaN, one whose squares fp32 cannot sum; V beyond any 8-bit float and V of zeros."""
        import torch

        p = self.problem
        for row, position in enumerate((0, _POSITIONS - 1, -1, 1, 2, 3, _POSITIONS)):
            arguments["positions"][row] = position
        heads = arguments["qkv"].unflatten(1, (-1, p.head_dim))
        k, v = p.q_heads, p.q_heads + p.kv_heads
        heads[0, 0] = 0
        heads[0, k] = 0
        heads[1] *= 1e-5
        heads[3, k:] *= 3000
        heads[4, 0, 17] = float("nan")
        heads[2, k] *= 1e19
        heads[6, k, 100] = float("nan")
        heads[0, v] = 0
        heads[3, v, ::3] = torch.tensor(30000.0)


def reference(case: Case) -> dict[str, torch.Tensor]:
    """Norm and rotation in float64; what is stored of K unrounded, of V bit by bit."""
    p, a = case.problem, case.arguments
    q, k, v, index_q, index_k = _split(p, a)
    k = norm_rope(k, "k", a)
    expected = {"q_out": norm_rope(q, "q", a)}
    k_scale = a["k_scale"].double() if p.kv_scale == "scalar" else 1.0
    v_scale = a["v_scale"] if p.kv_scale == "scalar" else 1.0
    if p.kv_scale == "per_token_head":
        made_k, made_v = cache_inputs.own_scale(k, p.kv_dtype), cache_inputs.own_scale(v.float(), p.kv_dtype)
        expected["k_scale"] = cache_inputs.inserted(a["k_scale"].double().T, made_k, a["slot_mapping"]).T
        expected["v_scale"] = cache_inputs.inserted(a["v_scale"].T, made_v, a["slot_mapping"]).T
        k_scale, v_scale = made_k[..., None], made_v[..., None]
    stored_v = cache_inputs.quantised(v, v_scale, p.kv_dtype)
    expected["k_cache"] = cache_inputs.into_pages(
        a["k_cache"].double(), _saturated(k / k_scale, p.kv_dtype), a["slot_mapping"]
    )
    expected["v_cache"] = cache_inputs.into_pages(a["v_cache"], stored_v, a["slot_mapping"])
    if index_k is not None:
        cache, slots, out = a["index_cache"], a["index_slot_mapping"], a["index_q_out"]
        stored = _saturated(norm_rope(index_k, "index_k", a), cache_inputs.name_of(cache.dtype))
        expected["index_q_out"] = _saturated(norm_rope(index_q, "index_q", a), cache_inputs.name_of(out.dtype))
        expected["index_cache"] = cache_inputs.into_pages(cache.double()[:, None], stored, slots)[:, 0]
    return expected


def norm_rope(x: torch.Tensor, kind: str, arguments: Mapping[str, Any]) -> torch.Tensor:
    """x [rows, heads, head_dim] normed with the weight of its kind and rotated by its rows' positions; float64,
    but for a sum of squares that fp32 cannot hold."""
    import torch

    x, weight = x.double(), arguments[f"{kind}_weight"].double()
    squares = x.square().sum(-1, keepdim=True)
    squares = torch.where(squares > torch.finfo(torch.float32).max, float("inf"), squares)
    x = x / (squares / x.shape[-1] + arguments["eps"]).sqrt() * (1 + weight)
    table, half = arguments["cos_sin_cache"].double(), _ROTARY // 2
    known = (arguments["positions"] >= 0) & (arguments["positions"] < len(table))
    angles = torch.full((len(x), 1, _ROTARY), float("nan"), dtype=torch.float64)
    angles[known, 0] = table[arguments["positions"][known]]
    cos, sin = angles[..., :half], angles[..., half:]
    lo, hi, rest = x[..., :half], x[..., half:_ROTARY], x[..., _ROTARY:]
    return torch.cat([lo * cos - hi * sin, hi * cos + lo * sin, rest], -1)


def _split(problem: Problem, arguments: Mapping[str, Any]) -> Sequence[Any]:
    """q, k, v, index q and index k of the fused rows, [rows, heads, head_dim] each; None without an index."""
    heads = arguments["qkv"].unflatten(1, (-1, problem.head_dim))
    sizes = [problem.q_heads, problem.kv_heads, problem.kv_heads]
    if "index_cache" not in arguments:
        return [*heads.split(sizes, 1), None, None]
    return heads.split([*sizes, heads.shape[1] - sum(sizes) - 1, 1], 1)  # type: ignore[no-any-return]


def _saturated(values: torch.Tensor, of: str) -> torch.Tensor:
    return values.clamp(-dtype(of).max, dtype(of).max) if dtype(of).is_fp8 else values
