"""From vLLM's configuration to settings, and every reason against at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from m3gen.integrations.vllm.options import Options
from m3gen.integrations.vllm.reading import read
from m3gen.runtime import Feature, Settings
from tests.integrations.vllm import fakes, tiny

CPU = torch.device("cpu")
GFX942 = Options(arch="gfx942")


def settings(config: Any, layers: Any = None) -> Settings:
    found, refused = read(config, layers or [fakes.layer(1)], CPU, GFX942)
    assert refused == []
    assert found is not None
    return found


def reasons(config: Any, layers: Any = None, options: Options = GFX942) -> list[str]:
    return [one.text for one in read(config, layers or [fakes.layer(1)], CPU, options)[1]]


def test_the_model_and_its_dtypes() -> None:
    found = settings(fakes.config())
    spec = found.spec
    assert (spec.q_heads, spec.kv_heads, spec.index_heads, spec.topk, spec.page_size) == (8, 2, 2, tiny.TOPK, 128)
    assert (spec.rotary_dim, spec.local_blocks, spec.init_blocks) == (64, 1, 0)
    assert (found.dtype, found.kv_dtype, found.index_dtype) == (torch.float32, torch.float32, torch.bfloat16)
    assert (found.kv_scale, found.norm, found.features) == ("none", False, frozenset())


def test_dense_layers_are_no_business_of_the_kernels() -> None:
    assert settings(fakes.config()).spec.dense_layers == 0


def test_an_8_bit_cache_is_the_platforms_own_and_has_scales() -> None:
    config = fakes.config()
    config.cache_config.cache_dtype = "fp8"
    found = settings(config)
    assert (found.kv_dtype, found.kv_scale) == (torch.uint8, "scalar")


def test_drafts_make_a_second_query_length() -> None:
    config = fakes.config()
    assert settings(config).limits.query_lens == (1,)
    config.speculative_config = SimpleNamespace(num_speculative_tokens=3)
    assert settings(config).limits.query_lens == (1, 4)


def test_a_model_length_that_shrinks_after_construction() -> None:
    config = fakes.config()
    found = settings(config)
    config.model_config.max_model_len = 512
    assert found.limits.model_len() == 512


def test_features_that_are_on() -> None:
    config = fakes.config()
    config.lora_config = config.kv_transfer_config = config.weight_transfer_config = object()
    config.model_config.enable_sleep_mode = True
    config.cache_config.kv_offloading_size = 1.0
    config.parallel_config.decode_context_parallel_size = 2
    config.parallel_config.prefill_context_parallel_size = 2
    config.parallel_config.use_ubatching = True
    config.attention_config.minimax_m3_indexer_cp = True
    shares = fakes.layer(1)
    shares.attention.skip_index_topk = True
    assert settings(config, [fakes.layer(2), shares]).features == frozenset(Feature)


def test_all_reasons_at_once() -> None:
    config = fakes.config()
    config.model_config.hf_text_config.sparse_attention_config["sparse_score_type"] = "mean"
    config.cache_config.block_size = 64
    config.cache_config.cache_dtype = "fp8_e5m2"
    config.kernel_config.monokernel = True
    other = fakes.layer(1)
    other.attention.impl = fakes.MiniMaxM3SparseAiterPAImpl()
    assert reasons(config, [other]) == [
        "sparse_score_type is 'mean', expected 'max'",
        "block_size is 64, expected a multiple of 128",
        "kv_cache_dtype is 'fp8_e5m2', expected one of auto, bfloat16, float16, fp8, fp8_e4m3",
        "the sparse layers' attention is MiniMaxM3SparseAiterPAImpl, expected MiniMaxM3SparseTritonImpl or "
        "MiniMaxM3SparseMSAImpl",
        "kernel_config.monokernel is on, which decides each step for itself: switch one of the two off",
    ]


def test_queries_in_fp8_only() -> None:
    layer = fakes.layer(1)
    layer.attention.impl.use_cutlass_decode = True
    assert reasons(fakes.config(), [layer]) == [
        "minimax_m3_msa_decode_backend is 'cutlass', which makes queries in fp8 only: expected 'triton'"
    ]


def test_no_gpu_and_no_arch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("m3gen.integrations.vllm.reading.live_architecture", lambda: None)
    config = fakes.config()
    config.cache_config.block_size = 64
    found, refused = read(config, [fakes.layer(1)], CPU, Options())
    assert found is None
    assert [one.text for one in refused] == [
        "block_size is 64, expected a multiple of 128",
        'no GPU that m3gen knows is here: name an "arch", whose kernels Triton\'s interpreter then runs',
    ]


def test_an_arch_that_is_not_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("m3gen.integrations.vllm.reading.live_architecture", lambda: "sm_90")
    monkeypatch.setattr("m3gen.integrations.vllm.reading._compute_units", lambda device: 132)
    _, refused = read(fakes.config(), [fakes.layer(1)], torch.device("cuda", 0), GFX942)
    assert [one.text for one in refused] == ["arch is gfx942, the GPU is sm_90"]
