"""vLLM's configuration and loaded layers as far as m3gen reads them, for machines without vLLM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from tests.integrations.vllm import tiny


class MiniMaxM3SparseTritonImpl:
    use_cutlass_decode = False


class MiniMaxM3IndexerTritonImpl:
    pass


class MiniMaxM3SparseAiterPAImpl:
    pass


def layer(index: int) -> Any:
    """A sparse layer, as `SparseLayer` presents one."""
    attention = SimpleNamespace(impl=MiniMaxM3SparseTritonImpl(), kv_cache_torch_dtype=torch.float32)
    return SimpleNamespace(
        attention=attention,
        indexer=MiniMaxM3IndexerTritonImpl(),
        index_cache=SimpleNamespace(dtype=torch.bfloat16),
        index=index,
    )


def config() -> Any:
    """`VllmConfig` of the tiny model, nothing switched on."""
    text = SimpleNamespace(**tiny.TEXT, rope_theta=5e6, model_type="minimax_m3_text")
    text.sparse_attention_config = dict(tiny.TEXT["sparse_attention_config"])
    return SimpleNamespace(
        model_config=SimpleNamespace(
            hf_text_config=text, dtype=torch.float32, max_model_len=1024, enable_sleep_mode=False
        ),
        cache_config=SimpleNamespace(block_size=128, cache_dtype="auto", kv_offloading_size=None),
        parallel_config=SimpleNamespace(
            tensor_parallel_size=1,
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
            use_ubatching=False,
        ),
        scheduler_config=SimpleNamespace(max_num_seqs=4),
        attention_config=SimpleNamespace(),
        kernel_config=SimpleNamespace(),
        speculative_config=None,
        lora_config=None,
        kv_transfer_config=None,
        weight_transfer_config=None,
        additional_config={},
    )
