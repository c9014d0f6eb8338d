"""Views of the cache: named, checked, and told apart by more than their address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from m3gen.errors import UserError
from m3gen.runtime import LayerCache, Settings, TensorIdentity
from tests.runtime.state.tiny import caches, settings, state

HALF = settings(dtype=torch.float16, kv_dtype=torch.float16)
FP8 = settings(kv_dtype=torch.uint8, index_dtype=torch.uint8, kv_scale="scalar")
PER_TOKEN = settings(kv_dtype=torch.uint8, index_dtype=torch.uint8, kv_scale="per_token_head")


def bound(of: Settings, cache: dict[int, LayerCache]) -> Any:
    return state(of).initialize_kv_cache(cache)


def planes(pages: int = 8) -> dict[str, torch.Tensor]:
    return {name: torch.ones(2, pages * 128) for name in ("k_scale", "v_scale")}


def test_k_and_v_are_the_halves_of_a_page() -> None:
    cache = caches()
    binding = bound(settings(), cache)
    kv = cache[0].kv
    assert kv is not None
    assert binding.layers[0].k.data_ptr() == kv.data_ptr()
    assert binding.layers[0].v.data_ptr() == kv.data_ptr() + 128 * 4
    assert binding.layers[0].v.stride() == kv.stride()
    assert binding.layers[0].index is None
    assert binding.layers[1].index is cache[1].index


def test_k_and_v_may_lie_apart_and_tokens_before_heads() -> None:
    apart = torch.zeros(2, 8, 128, 2, 128).transpose(2, 3)
    cache = caches()
    binding = bound(settings(), {0: LayerCache(k=apart[0], v=apart[1]), 1: cache[1]})
    assert binding.layers[0].k.stride() == apart[0].stride()


def test_bytes_are_seen_as_the_fp8_of_the_arch() -> None:
    """vLLM issue 45562: on gfx942 bytes were taken for e4m3fn, and every value for half of itself."""
    scales = {"k_scale": torch.tensor(0.5), "v_scale": torch.tensor([0.25])}
    binding = bound(FP8, caches(dtype=torch.uint8, **scales))
    assert binding.layers[1].k.dtype is torch.float8_e4m3fnuz
    assert binding.layers[1].index.dtype is torch.float8_e4m3fnuz
    assert [tuple(scale.shape) for scale in binding.layers[0].scales.values()] == [(1,), (1,)]
    other = replace(FP8, arch="sm_90")
    from m3gen.testing.fake_kernels import FakeKernels

    assert (
        state(other, FakeKernels()).initialize_kv_cache(caches(dtype=torch.uint8, **scales)).layers[0].k.dtype
        is torch.float8_e4m3fn
    )


def test_a_scale_plane_for_each_token() -> None:
    binding = bound(PER_TOKEN, caches(dtype=torch.uint8, **planes()))
    assert tuple(binding.layers[0].scales["k_scale"].shape) == (2, 1024)


def changed(layer: int, **values: Any) -> Callable[[], dict[int, LayerCache]]:
    def make() -> dict[int, LayerCache]:
        cache = caches()
        return cache | {layer: replace(cache[layer], **values)}

    return make


WRONG = [
    (dict, "no layer has a cache"),
    (lambda: caches() | {2: caches()[0]}, "layer 2: the model has layers 0 to 1"),
    (lambda: caches(dtype=torch.float16), r"layer 0, kv is torch.float16, expected torch.float32"),
    (changed(1, index=None), "layer 1, index is missing in a sparse layer"),
    (changed(0, index=torch.zeros(8, 128, 128)), "layer 0, index is given in a dense layer"),
    (changed(0, kv=None), "layer 0, kv give kv, or k and v, and not both"),
    (changed(0, k=torch.zeros(8, 2, 128, 128)), "layer 0, kv give kv, or k and v, and not both"),
    (
        changed(0, kv=torch.zeros(8, 2, 16, 256)),
        r"kv has shape \[8, 2, 16, 256\], expected \[pages, 2, 128, 256\]",
    ),
    (changed(0, kv=torch.zeros(8, 128, 2, 256)), r"expected \[pages, 2, 128, 256\]"),
    (changed(0, kv=torch.zeros(0, 2, 128, 256)), "layer 0, kv has no page"),
    (changed(0, kv=torch.zeros(8, 2, 128, 512)[..., ::2]), "layer 0, kv has last stride 2, expected 1"),
    (changed(0, kv=torch.zeros(8, 2, 128, 256, device="meta")), "layer 0, kv is on meta, expected cpu"),
    (changed(1, k_scale=torch.ones(1)), "layer 1, k_scale is given, scales are 'none'"),
]


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_a_tensor_that_is_not_as_it_must_be(make: Callable[[], dict[int, LayerCache]], text: str) -> None:
    refused = state()
    with pytest.raises(UserError, match=f"cannot bind the KV cache: .*{text}"):
        refused.initialize_kv_cache(make())
    assert refused.binding is None


@pytest.mark.parametrize(
    ("of", "scales", "text"),
    [
        (FP8, {"k_scale": torch.ones(1)}, "v_scale is missing, scales are 'scalar'"),
        (FP8, {"k_scale": torch.ones(2), "v_scale": torch.ones(1)}, "k_scale has 2 elements, expected 1"),
        (FP8, {"k_scale": torch.ones(1).half(), "v_scale": torch.ones(1)}, "k_scale is torch.float16"),
        (PER_TOKEN, planes(7), r"k_scale has shape \[2, 896\], expected \[2, 1024\]"),
    ],
)
def test_scales_that_are_not_as_they_must_be(of: Settings, scales: dict[str, torch.Tensor], text: str) -> None:
    with pytest.raises(UserError, match=text):
        bound(of, caches(dtype=torch.uint8, **scales))


def test_the_other_dialect_of_fp8_is_named() -> None:
    scales = {"k_scale": torch.ones(1), "v_scale": torch.ones(1)}
    with pytest.raises(
        UserError, match=r"is torch.float8_e4m3fn, expected torch.float8_e4m3fnuz, the fp8 of gfx942"
    ):
        bound(FP8, caches(dtype=torch.float8_e4m3fn, **scales))


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(UserError) as error:
        bound(HALF, caches())
    assert str(error.value).count("expected torch.float16") == 3  # two pages of K and V, one of index keys


def test_the_same_memory_seen_otherwise_has_another_identity() -> None:
    store = torch.zeros(8, 2, 128, 256)
    views = [store, store[:4], store.view(4, 4, 128, 256), store.transpose(1, 2), store.view(torch.int32)]
    identities = {TensorIdentity.of(view, "k") for view in views} | {TensorIdentity.of(store, "v")}
    assert len(identities) == len(views) + 1
    assert len({one.address for one in identities}) == 1
    assert TensorIdentity.of(store, "k") == TensorIdentity.of(store[:], "k")
