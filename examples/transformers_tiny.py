"""Decode a tiny random MiniMax-M3 of transformers with m3gen's kernels, and hold it against transformers alone.

    pip install 'm3gen[transformers]'
    python examples/transformers_tiny.py

Three dense and three sparse layers, block 128, two of the five blocks selected; two sequences of 600 tokens, then
eight more each. Without a GPU, Triton's interpreter runs the kernels: about a minute on two cores. Prints, figures
aside:

    transformers: prefill and 7 steps in ... s
    m3gen:        prefill and 7 steps in ... s, kernels of gfx942 in Triton's interpreter
    tokens equal: True; largest difference of a logit: ... of ...
    launches: kv_insert 42, index_select 21, sparse_decode 21, dense_decode 21
    run by transformers: 1 step, the step has no decode request
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from transformers import MiniMaxM3VLForCausalLM, MiniMaxM3VLTextConfig

from m3gen.integrations.transformers import PagedCache

DENSE, SPARSE, PROMPT, TOKENS = 3, 3, 600, 8


def tiny_model() -> Any:
    config = MiniMaxM3VLTextConfig(
        vocab_size=256,
        hidden_size=128,
        intermediate_size=64,
        dense_intermediate_size=128,
        shared_intermediate_size=64,
        num_hidden_layers=DENSE + SPARSE,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=128,
        max_position_embeddings=1024,
        num_local_experts=4,
        num_experts_per_tok=2,
        rope_parameters={"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.5},
        layer_types=["full_attention"] * DENSE + ["minimax_m3_sparse"] * SPARSE,
        mlp_layer_types=["dense"] * DENSE + ["sparse"] * SPARSE,
        index_n_heads=2,
        index_topk_blocks=2,
        initializer_range=0.2,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(1)
    return MiniMaxM3VLForCausalLM(config).eval()


def generate(model: Any, ids: torch.Tensor, **options: Any) -> tuple[torch.Tensor, torch.Tensor, float]:
    """The new tokens, the logits they come from, and seconds."""
    begin = time.perf_counter()
    result = model.generate(
        ids,
        max_new_tokens=TOKENS,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
        **options,
    )
    seconds = time.perf_counter() - begin
    return result.sequences[:, ids.shape[1] :], torch.stack(result.logits, dim=1), seconds


def main() -> int:
    model = tiny_model()
    ids = torch.randint(0, 256, (2, PROMPT))

    model.set_attn_implementation("sdpa")
    tokens, logits, seconds = generate(model, ids)
    print(f"transformers: prefill and {TOKENS - 1} steps in {seconds:.1f} s")

    model.set_attn_implementation("m3gen")
    cache = PagedCache.for_model(model, max_batch=len(ids), max_len=PROMPT + TOKENS)
    our_tokens, our_logits, seconds = generate(model, ids, cache=cache)
    arch = cache.state.settings.arch
    by = "on the GPU" if torch.cuda.is_available() else "in Triton's interpreter"
    print(f"m3gen:        prefill and {TOKENS - 1} steps in {seconds:.1f} s, kernels of {arch} {by}")

    equal = torch.equal(tokens, our_tokens)
    difference = (logits - our_logits).abs().max().item()
    print(
        f"tokens equal: {equal}; largest difference of a logit: {difference:.1e} of {logits.abs().max().item():.1f}"
    )
    counters = cache.state.counters
    print(f"launches: {', '.join(f'{op} {count}' for op, count in counters.launches.items() if count)}")
    for reason, count in counters.fallbacks.items():
        print(f"run by transformers: {count} step{'s' * (count > 1)}, {reason.words}")
    return 0 if equal and difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
