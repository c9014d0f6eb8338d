"""`generate` with a `PagedCache` gives the tokens of transformers, from m3gen's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from transformers import MiniMaxM3SparseForConditionalGeneration, MiniMaxM3VLConfig

from m3gen.integrations.transformers import PagedCache
from m3gen.runtime import Reason
from tests.integrations.transformers import tiny

DENSE, SPARSE, TOKENS = 3, 3, 17
BOUND = 1e-4  # of logits that reach 8


@dataclass(frozen=True)
class Run:
    model: Any
    ids: torch.Tensor
    cache: PagedCache
    tokens: torch.Tensor
    logits: torch.Tensor
    stock_tokens: torch.Tensor
    stock_logits: torch.Tensor


def shuffled(model: Any, **options: Any) -> PagedCache:
    """A cache with shuffled pages, NaN wherever nothing was written."""
    order = torch.Generator().manual_seed(3)
    return PagedCache.for_model(model, page_order=order, poison=True, **options)


@pytest.fixture(scope="module")
def run() -> Run:
    """Two sequences of 611 tokens, from transformers and from m3gen."""
    ids = tiny.prompts(2, 611)
    stock = tiny.generate(tiny.model(DENSE, SPARSE, attention="sdpa"), ids, TOKENS)
    model = tiny.model(DENSE, SPARSE)
    cache = shuffled(model, max_batch=2, max_len=768)
    return Run(model, ids, cache, *tiny.generate(model, ids, TOKENS, cache=cache), *stock)


def test_the_tokens_are_those_of_transformers(run: Run) -> None:
    assert run.tokens.tolist() == run.stock_tokens.tolist()
    assert (run.logits - run.stock_logits).abs().max() < BOUND
    assert min(len(set(row)) for row in run.tokens.tolist()) > 5  # not one token over and over


def test_every_layer_of_every_step_was_launched(run: Run) -> None:
    counters, steps = run.cache.state.counters, TOKENS - 1  # prefill gives the first token
    assert counters.specialised == steps
    assert counters.fallbacks == {Reason.NO_DECODE: 1}
    assert counters.launches == {
        "qk_norm_rope_insert": 0,
        "kv_insert": steps * (DENSE + SPARSE),
        "index_select": steps * SPARSE,
        "sparse_decode": steps * SPARSE,
        "dense_decode": steps * DENSE,
    }


def test_the_pages_were_shuffled_and_the_rest_is_still_nan(run: Run) -> None:
    pool, lengths = run.cache.pool, run.cache.lengths
    assert lengths == (611 + TOKENS - 1,) * 2
    assert pool.block_table.flatten().diff().abs().max() > 1
    for layer in run.cache.layers:
        assert layer.kv[list(pool.free)].isnan().all()
        for row, length in enumerate(lengths):
            last = layer.kv[pool.block_table[row, length // 128]]
            assert last[:, : length % 128].isfinite().all()
            assert last[:, length % 128 :].isnan().all()


def test_the_selection_matters(run: Run) -> None:
    everything = tiny.model(DENSE, SPARSE, attention="sdpa", index_topk_blocks=6)
    _, logits = tiny.generate(everything, run.ids, 1)
    assert (logits - run.stock_logits[:, :1]).abs().max() > 0.1


def test_a_cache_that_was_reset_serves_again(run: Run) -> None:
    run.cache.reset()
    assert (run.cache.lengths, run.cache.get_seq_length()) == ((), 0)
    assert all(layer.kv.isnan().all() for layer in run.cache.layers)
    tokens, logits = tiny.generate(run.model, run.ids[:1], 3, cache=run.cache)
    assert tokens.tolist() == run.stock_tokens[:1, :3].tolist()
    assert (logits - run.stock_logits[:1, :3]).abs().max() < BOUND


def test_bf16() -> None:
    ids = tiny.prompts(2, 611)
    exact = tiny.logits(tiny.model(), torch.cat([ids, ids[:, :3]], 1))[:, -4:]
    stock = tiny.logits(tiny.model(dtype=torch.bfloat16), torch.cat([ids, ids[:, :3]], 1))[:, -4:]
    model = tiny.model(dtype=torch.bfloat16)
    cache = shuffled(model, max_batch=2, max_len=640)
    with torch.no_grad():
        ours = [model(ids, cache=cache, logits_to_keep=1).logits]
        ours += [model(ids[:, token : token + 1], cache=cache).logits for token in range(3)]
    error = (torch.cat(ours, 1) - exact).norm() / exact.norm()
    assert cache.state.counters.specialised == 3
    assert error < 1.5 * (stock - exact).norm() / exact.norm()


def test_a_conversation_goes_on_where_it_ended() -> None:
    ids = tiny.prompts(1, 420)
    stock, _ = tiny.generate(tiny.model(attention="sdpa"), ids, 4)
    model = tiny.model()
    cache = shuffled(model, max_batch=1, max_len=512)
    first, _ = tiny.generate(model, ids[:, :300], 2, cache=cache)
    cache.crop(-1)  # the one new token that is in the cache: the prompt went on otherwise
    assert first.shape == (1, 2)
    tokens, _ = tiny.generate(model, ids, 4, cache=cache)
    assert tokens.tolist() == stock.tolist()
    assert cache.state.counters.fallbacks == {Reason.NO_DECODE: 2}


def test_a_prompt_in_chunks() -> None:
    ids = tiny.prompts(2, 300)
    stock, _ = tiny.generate(tiny.model(attention="sdpa"), ids, 3)
    model = tiny.model()
    cache = shuffled(model, max_batch=2, max_len=384)
    tokens, _ = tiny.generate(model, ids, 3, cache=cache, prefill_chunk_size=128)
    assert tokens.tolist() == stock.tolist()
    assert cache.state.counters.fallbacks == {Reason.NO_DECODE: 3}


def test_the_text_half_of_a_multimodal_model() -> None:
    vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = MiniMaxM3VLConfig(text_config=tiny.config().to_dict(), vision_config=vision)
    torch.manual_seed(1)
    model = MiniMaxM3SparseForConditionalGeneration(config).eval()
    ids = tiny.prompts(1, 300)
    stock, _ = tiny.generate(model, ids, 3)
    model.set_attn_implementation("m3gen")
    cache = shuffled(model, max_batch=1, max_len=384)
    tokens, _ = tiny.generate(model, ids, 3, cache=cache)
    assert tokens.tolist() == stock.tolist()
    assert cache.state.counters.specialised == 2


def test_drafts_are_verified_and_rejected() -> None:
    ids = tiny.prompts(1, 300)  # where most tokens of the vocabulary occur: drafts are what follows them
    stock, _ = tiny.generate(tiny.model(attention="sdpa"), ids, 6)
    model = tiny.model()
    cache = shuffled(model, max_batch=1, max_len=384, query_lens=(1, 2, 3, 4))
    tokens, _ = tiny.generate(model, ids, 6, cache=cache, prompt_lookup_num_tokens=3)
    assert tokens.tolist() == stock.tolist()
    assert max(query_len for _, query_len in cache.state.counters.sizes) > 1
