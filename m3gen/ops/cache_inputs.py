"""Paged caches as inputs of the cache ops: as an engine binds them, and as they hurt; and what a slot holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from m3gen.spec import DTYPES, Problem, dtype

if TYPE_CHECKING:
    import torch

# A cache larger than any 32-bit byte offset reaches: what an engine allocates, and other code than a small one.
_REAL_CACHE_BYTES = 3 << 30


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """How a cache lies in memory; the logical shape [pages, kv_heads, page, head_dim] never changes.

    `heads_first`   pages are [kv_heads, page, ...] (HND) rather than [page, kv_heads, ...] (NHD)
    `interleaved`   K and V share one row of 2 * head_dim elements, as vLLM keeps them
    `far`           pages lie 2^30 elements apart, so that from page 2 on offsets pass 2^31; what is between them
                    is never touched, so the memory behind it is never committed
    """

    heads_first: bool = True
    interleaved: bool = True
    far: bool = False


def kv_caches(
    problem: Problem, pages: int, layout: CacheLayout, generator: torch.Generator, of: str = ""
) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V full of finite numbers, so that a stray write shows whatever it writes."""
    import torch

    element = dtype(of or problem.kv_dtype).torch()
    inner = [problem.kv_heads, problem.page_size]
    width = (2 if layout.interleaved else 1) * problem.head_dim
    views = []
    for side in range(2):
        if side == 0 or not layout.interleaved:
            store = _pages([*(inner if layout.heads_first else inner[::-1]), width], pages, layout.far, element)
            logical = store if layout.heads_first else store.transpose(1, 2)
        first = side * problem.head_dim if layout.interleaved else 0
        views.append(logical[..., first : first + problem.head_dim])
        views[side].copy_(torch.randn(views[side].shape, generator=generator).to(element))
    return views[0], views[1]


def index_cache(
    problem: Problem, pages: int, of: str, generator: torch.Generator, *, far: bool = False
) -> torch.Tensor:
    """[pages, page, head_dim] in the dtype named `of`."""
    import torch

    element = dtype(of).torch()
    store = _pages([problem.page_size, problem.head_dim], pages, far, element)
    return store.copy_(torch.randn(store.shape, generator=generator).to(element))


def scale_plane(problem: Problem, pages: int, generator: torch.Generator) -> torch.Tensor:
    """fp32 [kv_heads, pages * page], as large as the scales of numbers around 1; last stride 1."""
    import torch

    tokens = pages * problem.page_size
    wide = torch.rand((problem.kv_heads, tokens + 3), generator=generator) * 0.02 + 0.001
    return wide[:, :tokens]


def scales(problem: Problem, pages: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """The scales that the cache's kind calls for, by argument name; scalars that are no power of two."""
    import torch

    if problem.kv_scale == "scalar":
        return {"k_scale": torch.tensor([0.043]), "v_scale": torch.tensor([0.021])}
    if problem.kv_scale == "per_token_head":
        return {f"{side}_scale": scale_plane(problem, pages, generator) for side in "kv"}
    return {}


def real_scales(problem: Problem) -> dict[str, torch.Tensor]:
    """The same on the meta device, for the caches of `real_caches`."""
    import torch

    if problem.kv_scale == "scalar":
        return {f"{side}_scale": torch.empty(1, device="meta") for side in "kv"}
    if problem.kv_scale == "per_token_head":
        tokens = real_pages(problem) * problem.page_size
        planes = torch.empty((2, problem.kv_heads, tokens), device="meta")
        return {"k_scale": planes[0], "v_scale": planes[1]}
    return {}


def real_pages(problem: Problem) -> int:
    """Pages of a K and V cache of 3 GiB."""
    elements = 2 * problem.kv_heads * problem.page_size * problem.head_dim
    return -(-_REAL_CACHE_BYTES // (elements * dtype(problem.kv_dtype).bytes))


def real_caches(problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V on the meta device, interleaved (HND), over 2 GiB."""
    import torch

    shape = (real_pages(problem), problem.kv_heads, problem.page_size, 2 * problem.head_dim)
    cache = torch.empty(shape, dtype=dtype(problem.kv_dtype).torch(), device="meta")
    return cache[..., : problem.head_dim], cache[..., problem.head_dim :]


def quantised(values: torch.Tensor, scale: torch.Tensor | float, of: str) -> torch.Tensor:
    """fp32 values over their scale in the dtype `of`, saturating where it is an 8-bit float: what is stored."""
    target = dtype(of)
    quotient = values.float() / scale
    return (quotient.clamp(-target.max, target.max) if target.is_fp8 else quotient).to(target.torch())


def own_scale(values: torch.Tensor, of: str) -> torch.Tensor:
    """The scale of each head of `values` [..., head_dim]: its largest magnitude over the largest number of `of`,
    1 where that is 0; NaN is left out."""
    scale = values.abs().nan_to_num(0.0, float("inf")).amax(-1) / dtype(of).max
    return scale.masked_fill(scale == 0, 1.0)


def inserted(tokens: torch.Tensor, values: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    """A copy of tokens [slots, ...] with each row's values in its slot, where it has one."""
    result = tokens.clone()
    is_slot = (slots >= 0) & (slots < len(tokens))
    result[slots[is_slot]] = values[is_slot]
    return result


def into_pages(cache: torch.Tensor, values: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    """A copy of cache [pages, heads, page, head_dim] with values [rows, heads, head_dim] in their slots."""
    pages, heads, page, dim = cache.shape
    tokens = cache.transpose(1, 2).reshape(pages * page, heads, dim)
    return inserted(tokens, values, slots).reshape(pages, page, heads, dim).transpose(1, 2)


def name_of(element: torch.dtype) -> str:
    """m3gen's name of a torch dtype."""
    return next(name for name, known in DTYPES.items() if known.torch() == element)


def _pages(inner: list[int], pages: int, far: bool, element: torch.dtype) -> torch.Tensor:
    import torch

    if not far:
        return torch.empty((pages, *inner), dtype=element)
    stride = 1 << 30
    elements = inner[0] * inner[1] * (inner[2] if len(inner) > 2 else 1)
    store = torch.empty((pages - 1) * stride + elements, dtype=element)
    strides = [elements // inner[0], *([inner[2]] if len(inner) > 2 else []), 1]
    return store.as_strided((pages, *inner), (stride, *strides))
