"""A state that cannot be refuses with every reason at once, each naming what was found and what is needed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen.runtime import Feature, Limits, Place, RefusalCode, Refused
from m3gen.spec import ModelSpec
from m3gen.testing.fake_kernels import FakeKernels, FakeOp
from tests.runtime.state.tiny import SPEC, caches, settings, state


def limits(**changed: Any) -> Limits:
    return Limits(**{"max_requests": 4, "max_model_len": 1024, **changed})


def spec(**changed: Any) -> ModelSpec:
    return ModelSpec(**{"layers": 2, "dense_layers": 1, "q_heads": 8, "kv_heads": 2, "index_heads": 2, **changed})


CASES = [
    ({"tensor_parallel": 3}, RefusalCode.SHARD, "tp=3 does not divide the 8 query heads"),
    ({"spec": spec(index_heads=1)}, RefusalCode.SHARD, "1 index heads a rank, expected its 2 KV heads"),
    ({"spec": spec(page_size=64)}, RefusalCode.SHAPE, "page_size is 64, expected 128"),
    ({"spec": spec(page_size=16)}, RefusalCode.SHAPE, "page_size is 16, expected 128"),
    ({"spec": spec(head_dim=64)}, RefusalCode.SHAPE, "head_dim is 64, expected 128"),
    ({"spec": spec(rotary_dim=128)}, RefusalCode.SHAPE, "rotary_dim is 128, expected 64"),
    ({"spec": spec(index_dim=64)}, RefusalCode.SHAPE, "index_dim is 64, expected 128"),
    (
        {"dtype": torch.float64},
        RefusalCode.DTYPE,
        "activations are torch.float64, expected one of bf16, fp16, fp32",
    ),
    ({"kv_dtype": torch.int8}, RefusalCode.DTYPE, "the KV cache is torch.int8, expected one of"),
    ({"kv_dtype": torch.float8_e4m3fn}, RefusalCode.DTYPE, "torch.float8_e4m3fnuz, torch.uint8"),
    ({"index_dtype": torch.float8_e5m2}, RefusalCode.DTYPE, "the index cache is torch.float8_e5m2"),
    ({"kv_scale": "per_head"}, RefusalCode.DTYPE, "kv_scale is 'per_head', expected one of none, scalar"),
    ({"limits": limits(max_requests=0)}, RefusalCode.LIMITS, "max_requests is 0, expected 1 or more"),
    ({"limits": limits(query_lens=())}, RefusalCode.LIMITS, r"query_lens is \(\), expected lengths of 1 or more"),
    ({"limits": limits(query_lens=(1, 0))}, RefusalCode.LIMITS, "expected lengths of 1 or more"),
    ({"limits": limits(max_requests=1 << 15, query_lens=(4,))}, RefusalCode.LIMITS, "131072 query rows a step"),
    ({"limits": limits(max_model_len=0)}, RefusalCode.LIMITS, "max_model_len is 0, expected 1 to 1048576"),
    ({"limits": limits(max_model_len=lambda: 1 << 21)}, RefusalCode.LIMITS, "max_model_len is 2097152"),
    ({"limits": limits(capture_requests=(1, 8))}, RefusalCode.LIMITS, "a graph of 8 requests, expected 1 to"),
    *(({"features": frozenset({one})}, RefusalCode.FEATURE, f"{one.value} is on") for one in Feature),
]


@pytest.mark.parametrize(("changed", "code", "text"), CASES)
def test_one_reason(changed: dict[str, Any], code: RefusalCode, text: str) -> None:
    with pytest.raises(Refused, match=f"1 reason: .*{text}") as refused:
        state(settings(**changed))
    assert [one.code for one in refused.value.refusals] == [code]


def test_a_gpu_of_the_arch_is_here_and_the_model_is_not_on_it() -> None:
    kernels = FakeKernels()
    kernels.place = Place.GPU
    with pytest.raises(Refused, match=r"the model is on cpu, expected the GPU \(gfx942\)"):
        state(kernels=kernels)


def test_all_reasons_come_at_once() -> None:
    wrong = settings(
        spec=spec(page_size=64), dtype=torch.float64, features=frozenset({Feature.LORA, Feature.SLEEP_MODE})
    )
    with pytest.raises(Refused, match="no specialised decode, 4 reasons: ") as refused:
        state(wrong)
    codes = [one.code for one in refused.value.refusals]
    assert codes == [RefusalCode.SHAPE, RefusalCode.DTYPE, RefusalCode.FEATURE, RefusalCode.FEATURE]


def test_every_kernel_that_is_missing_is_named() -> None:
    kernels = FakeKernels(
        index_select=FakeOp("index_select", missing="no selector"),
        dense_decode=FakeOp("dense_decode", missing="no dense"),
    )
    with pytest.raises(Refused) as refused:
        state(kernels=kernels)
    texts = [one.text for one in refused.value.refusals]
    assert texts == ["no selector"] * 2 + ["no dense"] * 2  # one for each query length
    assert {one.code for one in refused.value.refusals} == {RefusalCode.KERNEL}


def test_what_a_model_does_not_need_is_not_asked_for() -> None:
    kernels = FakeKernels(dense_decode=FakeOp("dense_decode", missing="no dense"))
    without_dense = ModelSpec(**{**{f: getattr(SPEC, f) for f in SPEC.__slots__}, "dense_layers": 0})
    state(settings(spec=without_dense), kernels).close()
    assert not kernels["kv_insert"].problems


def test_an_engine_that_norms_needs_no_norm_kernel_and_may_rotate_otherwise() -> None:
    kernels = FakeKernels(qk_norm_rope_insert=FakeOp("qk_norm_rope_insert", missing="no norm"))
    state(settings(spec=spec(rotary_dim=128), norm=False), kernels).close()


def test_an_engine_that_stores_needs_no_kernel_for_it() -> None:
    kernels = FakeKernels(kv_insert=FakeOp("kv_insert", missing="no store"))
    one = state(settings(norm=False, store=False), kernels)
    one.initialize_kv_cache(caches())
    one.warm_up()
    assert one.counters.steps == 0
