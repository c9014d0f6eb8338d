"""A tiny random MiniMax-M3: its checkpoint as vLLM reads it, and what transformers generates from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

LAYERS, DENSE_LAYERS, TOPK, VOCAB = 4, 1, 2, 512
IS_SPARSE = [0] * DENSE_LAYERS + [1] * (LAYERS - DENSE_LAYERS)

# Sizes that vLLM takes: head and index dim 128, pages of 128. A dense MLP in every layer: vLLM's CPU build has no
# expert kernels for this activation.
TEXT = {
    "vocab_size": VOCAB,
    "hidden_size": 128,
    "intermediate_size": 64,
    "dense_intermediate_size": 256,
    "shared_intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rotary_dim": 64,
    "partial_rotary_factor": 0.5,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_layer_freq": [0] * LAYERS,
    "sparse_attention_config": {
        "use_sparse_attention": True,
        "sparse_index_dim": 128,
        "sparse_num_index_heads": 2,
        "sparse_topk_blocks": TOPK,
        "sparse_block_size": 128,
        "sparse_disable_index_value": IS_SPARSE,
        "sparse_score_type": "max",
        "sparse_init_block": 0,
        "sparse_local_block": 1,
        "sparse_attention_freq": IS_SPARSE,
    },
    "tie_word_embeddings": False,
}


def model(seed: int = 0) -> Any:
    """The transformers model in fp32 with random weights, norms among them."""
    from transformers import MiniMaxM3VLForCausalLM, MiniMaxM3VLTextConfig

    rope = {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.5}
    left_out = ("moe_layer_freq", "partial_rotary_factor")
    config = MiniMaxM3VLTextConfig(
        **{name: value for name, value in TEXT.items() if name not in left_out},
        rope_parameters=rope,
        mlp_layer_types=["dense"] * LAYERS,
        bos_token_id=None,
        eos_token_id=None,
    )
    made = MiniMaxM3VLForCausalLM(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.1, generator=generator)
    return made


def save(made: Any, folder: Path) -> None:
    """Checkpoint of a model under the names of MiniMax's own."""
    from safetensors.torch import save_file

    save_file(dict(_renamed(made.state_dict())), folder / "model.safetensors")
    config = {
        "architectures": ["MiniMaxM3SparseForCausalLM"],
        "model_type": "minimax_m3_vl",
        "torch_dtype": "float32",
        "text_config": {**TEXT, "hidden_act": "swigluoai", "torch_dtype": "float32"},
        "vision_config": {},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def _renamed(weights: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, weight in weights.items():
        if name.endswith("mlp.gate_up_proj.weight"):
            gate, up = weight.chunk(2)
            yield name.replace("gate_up_proj", "gate_proj"), gate.contiguous()
            yield name.replace("gate_up_proj", "up_proj"), up.contiguous()
        else:
            yield name.replace("self_attn.indexer.", "self_attn.index_"), weight.contiguous()


def prompt(length: int) -> list[int]:
    """Random token ids, the same for the same length."""
    return torch.randint(0, VOCAB, (length,), generator=torch.Generator().manual_seed(length)).tolist()


@torch.no_grad()
def greedy(made: Any, prompt: Sequence[int], count: int) -> list[int]:
    """The next `count` tokens by transformers' own `generate`."""
    ids = torch.tensor([prompt])
    answer = made.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)
    return [int(token) for token in answer[0, len(prompt) :]]


@contextmanager
def bf16_index() -> Iterator[None]:
    """Inside, transformers' indexers round their queries and keys to bf16, as vLLM stores them whatever the dtype of
    the model. Selection is a matter of close calls: where it turns out otherwise, so do the tokens."""
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as module

    indexer, rotate = module.MiniMaxM3VLIndexer, module.apply_rotary_pos_emb
    forward = indexer.forward

    def rounded(*arguments: Any, **keywords: Any) -> tuple[torch.Tensor, ...]:
        return tuple(x.bfloat16().to(x.dtype) for x in rotate(*arguments, **keywords))

    def with_rounding(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with patch.object(module, "apply_rotary_pos_emb", rounded):
            return forward(self, *arguments, **keywords)

    with patch.object(indexer, "forward", with_rounding):
        yield
