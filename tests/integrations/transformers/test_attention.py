"""The attention implementation "m3gen" of transformers, by name."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AttentionInterface, AttentionMaskInterface, MiniMaxM3VLForCausalLM
from transformers.masking_utils import sdpa_mask

from m3gen.integrations.transformers import NAME, PagedCache, register
from m3gen.integrations.transformers.attention import attention
from m3gen.testing.fake_kernels import FakeKernels
from tests.integrations.transformers import tiny


def test_importing_registers_it_and_again_changes_nothing() -> None:
    for _ in range(2):
        assert AttentionInterface()[NAME] is attention
        assert AttentionMaskInterface()[NAME] is sdpa_mask
        register()


def test_a_model_is_loaded_with_it(tmp_path: Path) -> None:
    tiny.model().save_pretrained(tmp_path)
    model = MiniMaxM3VLForCausalLM.from_pretrained(tmp_path, attn_implementation=NAME)
    cache = PagedCache.for_model(model, max_batch=1, max_len=128, kernels=FakeKernels())
    with torch.no_grad():
        model(tiny.prompts(1, 1), cache=cache)
    assert cache.state.counters.launches["sparse_decode"] == 1


def test_a_backbone_without_a_head() -> None:
    backbone = tiny.model().model
    cache = PagedCache.for_model(backbone, max_batch=1, max_len=128, kernels=FakeKernels())
    with torch.no_grad():
        backbone(tiny.prompts(1, 1), cache=cache)
    assert cache.state.counters.launches["sparse_decode"] == 1
