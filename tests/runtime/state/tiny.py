"""A small model for the tests of `ModelState`: one dense and one sparse layer, two KV heads, top-k 2."""

from __future__ import annotations

from typing import Any

import torch

from m3gen.runtime import LayerCache, Limits, ModelState, Settings
from m3gen.spec import ModelSpec
from m3gen.testing.fake_kernels import FakeKernels

SPEC = ModelSpec(
    name="tiny",
    layers=2,
    dense_layers=1,
    hidden=64,
    q_heads=8,
    kv_heads=2,
    index_heads=2,
    topk=2,
    max_position=4096,
)
LIMITS = Limits(max_requests=4, query_lens=(1, 4), max_model_len=1024)


def settings(**changed: Any) -> Settings:
    usual: dict[str, Any] = {"arch": "gfx942", "limits": LIMITS, "spec": SPEC}
    usual |= {"dtype": torch.float32, "kv_dtype": torch.float32}
    return Settings(**{**usual, **changed})


def state(of: Settings | None = None, kernels: Any = None, **options: Any) -> ModelState:
    return ModelState(of or settings(), kernels or FakeKernels(), **options)


def caches(pages: int = 8, dtype: torch.dtype = torch.float32, **scales: Any) -> dict[int, LayerCache]:
    """NaN everywhere."""

    def kv() -> torch.Tensor:
        return torch.full((pages, SPEC.kv_heads, 128, 256), float("nan")).to(dtype)

    index = torch.full((pages, 128, 128), float("nan")).to(dtype)
    return {0: LayerCache(kv=kv(), **scales), 1: LayerCache(kv=kv(), index=index, **scales)}
