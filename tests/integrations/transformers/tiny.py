"""Random MiniMax-M3 models small enough for Triton's interpreter, and what transformers itself makes of them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import MiniMaxM3VLForCausalLM, MiniMaxM3VLTextConfig

TOPK = 2  # of five blocks in 600 tokens


def config(dense: int = 1, sparse: int = 1, **changed: Any) -> MiniMaxM3VLTextConfig:
    """`dense` layers, then `sparse` ones, which are also those with experts; two KV heads of four query heads."""
    usual: dict[str, Any] = {
        "vocab_size": 256,
        "hidden_size": 128,
        "intermediate_size": 64,
        "dense_intermediate_size": 128,
        "shared_intermediate_size": 64,
        "num_hidden_layers": dense + sparse,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "max_position_embeddings": 2048,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.5},
        "layer_types": ["full_attention"] * dense + ["minimax_m3_sparse"] * sparse,
        "mlp_layer_types": ["dense"] * dense + ["sparse"] * sparse,
        "index_n_heads": 2,
        "index_head_dim": 128,
        "index_block_size": 128,
        "index_topk_blocks": TOPK,
        "initializer_range": 0.2,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return MiniMaxM3VLTextConfig(**{**usual, **changed})


def model(
    dense: int = 1, sparse: int = 1, dtype: torch.dtype = torch.float32, attention: str = "m3gen", **changed: Any
) -> Any:
    """A model of random weights, the same for the same shape whatever the dtype."""
    torch.manual_seed(1)
    made = MiniMaxM3VLForCausalLM(config(dense, sparse, **changed)).eval().to(dtype)
    made.set_attn_implementation(attention)
    return made


def prompts(batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, 256, (batch, length), generator=torch.Generator().manual_seed(1))


def generate(model: Any, ids: torch.Tensor, tokens: int, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Greedy: the new tokens [batch, tokens] and the logits that they come from [batch, tokens, vocabulary]."""
    result = model.generate(
        ids,
        max_new_tokens=tokens,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
        **options,
    )
    return result.sequences[:, ids.shape[1] :], torch.stack(result.logits, dim=1)


def logits(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Of all tokens [batch, length, vocabulary], without a cache."""
    with torch.no_grad():
        found: torch.Tensor = model(ids, use_cache=False).logits
    return found
