"""Decode a tiny random MiniMax-M3 of transformers with every op of m3gen executed as machine code of an AMD GPU.

    pip install 'm3gen[transformers]'
    python examples/transformers_machine_code.py --arch gfx942

One dense and two sparse layers, block 128, two of the three or four blocks selected; a prompt of 382 tokens, which
transformers prefills, then greedy steps, which m3gen decodes. No GPU is asked for: Triton compiles each kernel for the
arch and the emulator executes its code. The same model decodes beside it by transformers alone. Exits 1 when a token
differs, or a launch did not reach the emulator. In bf16; `--dtype float32` comes nearer to transformers. About half a
minute of CPU time. Prints, figures aside:

    prefill: token 35 (transformers), 35 (m3gen), ... s; no launch
    step 1: token 15 (transformers), 15 (m3gen), ... s; kv_insert 3, index_select 2, sparse_decode 2, dense_decode 1
    step 2: token 35 (transformers), 35 (m3gen), ... s; kv_insert 6, index_select 4, sparse_decode 4, dense_decode 2
    step 3: token 20 (transformers), 20 (m3gen), ... s; kv_insert 9, index_select 6, sparse_decode 6, dense_decode 3
    step 4: token 41 (transformers), 41 (m3gen), ... s; kv_insert 12, index_select 8, sparse_decode 8, dense_decode 4
    step 5: token 12 (transformers), 12 (m3gen), ... s; kv_insert 15, index_select 10, sparse_decode 10, dense_decode 5
    tokens equal: True; largest difference of a logit ..., smallest margin ...
      insert_kv: 15 launches of ... instructions, ... executed by waves
      dense_decode_attend: 5 launches of ... instructions, ... executed by waves
      merge_splits: 15 launches of ... instructions, ... executed by waves
      score_blocks: 10 launches of ... instructions, ... executed by waves
      select_blocks: 10 launches of ... instructions, ... executed by waves
      sparse_decode_attend: 10 launches of ... instructions, ... executed by waves
    65 launches executed as gfx942, 65 implied by the counters; interpreter loaded: False
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from transformers import DynamicCache, MiniMaxM3VLForCausalLM, MiniMaxM3VLTextConfig

from m3gen import runtime
from m3gen.emulator import Emulator
from m3gen.integrations.transformers import PagedCache
from m3gen.testing.traced_build import TracedBuild

DENSE, SPARSE, VOCABULARY, PROMPT = 1, 2, 64, 382
SEED = 27  # of those tried, the one whose first two logits lie furthest apart in every step


def tiny_model(dtype: torch.dtype, attention: str) -> tuple[Any, torch.Tensor]:
    """The model and its prompt [1, PROMPT]."""
    config = MiniMaxM3VLTextConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=64,
        dense_intermediate_size=128,
        shared_intermediate_size=64,
        num_hidden_layers=DENSE + SPARSE,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=128,
        max_position_embeddings=2048,
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
    torch.manual_seed(SEED)
    model = MiniMaxM3VLForCausalLM(config).eval()
    ids = torch.randint(0, VOCABULARY, (1, PROMPT))
    model = model.to(dtype)
    model.set_attn_implementation(attention)
    return model, ids


@torch.no_grad()
def greedy(model: Any, ids: torch.Tensor, cache: Any) -> Iterator[torch.Tensor]:
    """The logits [VOCABULARY] of the prompt's last token, then of each new one."""
    while True:
        logits = model(ids, cache=cache, logits_to_keep=1).logits[0, -1].float()
        yield logits
        ids = logits.argmax().view(1, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=["gfx942", "gfx950"], default="gfx942")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16")
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)

    emulator, built = Emulator(options.arch, profile=True), TracedBuild()
    kernels = runtime.load(
        options.arch, build=built, adapt=lambda launcher: emulator.emulated(built.shipped(launcher))
    )
    model, ids = tiny_model(dtype, "m3gen")
    cache = PagedCache.for_model(model, max_batch=1, max_len=PROMPT + options.steps, kernels=kernels)
    state = cache.state
    stock, _ = tiny_model(dtype, "sdpa")
    both = zip(greedy(stock, ids, DynamicCache(config=stock.config)), greedy(model, ids, cache), strict=True)

    margin, difference, equal = float("inf"), 0.0, True
    for step in range(options.steps + 1):
        begin = time.perf_counter()
        theirs, ours = next(both)
        first, second = theirs.topk(2).values.tolist()
        margin, difference = min(margin, first - second), max(difference, (theirs - ours).abs().max().item())
        tokens = int(theirs.argmax()), int(ours.argmax())
        equal = equal and tokens[0] == tokens[1]
        launched = ", ".join(f"{op} {count}" for op, count in state.counters.launches.items() if count)
        print(
            f"{f'step {step}' if step else 'prefill'}: token {tokens[0]} (transformers), {tokens[1]} (m3gen), "
            f"{time.perf_counter() - begin:.1f} s; {launched or 'no launch'}"
        )
        if not equal:
            break
    print(f"tokens equal: {equal}; largest difference of a logit {difference:.2g}, smallest margin {margin:.2g}")

    ran = Counter(profile.kernel for profile in emulator.profiles)
    for name, launches in ran.items():
        profiles = [profile for profile in emulator.profiles if profile.kernel == name]
        length = len(profiles[0].program.instructions)
        executed = sum(int(profile.counts.waves.sum()) for profile in profiles)
        print(f"  {name}: {launches} launches of {length} instructions, {executed} executed by waves")
    implied = built.launched(state.counters)
    interpreted = "m3gen.interpreter.scope" in sys.modules
    print(
        f"{emulator.launches} launches executed as {options.arch}, {implied.total()} implied by the counters; "
        f"interpreter loaded: {interpreted}"
    )
    whole = ran == implied and emulator.launches == implied.total() > 0 and not interpreted
    return 0 if equal and whole and state.counters.specialised == options.steps else 1


if __name__ == "__main__":
    sys.exit(main())
