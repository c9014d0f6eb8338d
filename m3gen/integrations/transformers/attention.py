"""The attention implementation "m3gen" of transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from m3gen.integrations.transformers.layer import HANDLE, PagedLayer

NAME = "m3gen"


def register() -> None:
    """Make "m3gen" known to transformers, with the masks of sdpa. May be called again."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    block_indices: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """query [batch, q_heads, query_len, head_dim]; returns [batch, query_len, q_heads, head_dim] and None.

    m3gen's kernels where `key` comes from a `PagedCache` in a specialised step; else sdpa under the mask of
    `block_indices` [batch, index_heads, query_len, topk], as transformers does it.
    """
    layer: PagedLayer | None = getattr(key, HANDLE, None)
    if layer is None:
        return _sdpa(module, query, key, value, attention_mask, block_indices, **kwargs)
    step = layer.step
    if step.counts is None:
        layer.sequences.see(step, attention_mask, kwargs.get("position_ids"))
    if step.specialised:
        out = layer.attend(query)
    else:
        if step.keys > step.query_len:  # keys lie by position here, by column in the mask of transformers
            attention_mask = step.causal()
        out, _ = _sdpa(module, query, key, value, attention_mask, block_indices, **kwargs)
    layer.sequences.attended(step)
    return out, None


def _sdpa(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    block_indices: torch.Tensor | None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    if block_indices is not None:
        attention_mask = module.indexer.build_block_mask(
            block_indices, attention_mask, key.shape[2], query.dtype, query.device, kwargs["position_ids"]
        )
    out: torch.Tensor = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)[0]
    return out, None
