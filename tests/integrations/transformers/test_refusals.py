"""What m3gen does not take from transformers is refused by name, and nothing is left half done."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from m3gen.errors import UserError
from m3gen.integrations.transformers import PagedCache, check_version, restore
from m3gen.integrations.transformers.indexer import PagedIndexer
from m3gen.testing.fake_kernels import FakeKernels
from tests.integrations.transformers import tiny


@pytest.fixture
def model() -> Any:
    return tiny.model()


def cache_for(model: Any, **options: Any) -> PagedCache:
    """One whose kernels do nothing: refusals come before them."""
    options = {"max_batch": 2, "max_len": 256, "kernels": FakeKernels()} | options
    return PagedCache.for_model(model, **options)


def step(model: Any, cache: PagedCache, batch: int = 2, tokens: int = 4, **options: Any) -> None:
    with torch.no_grad():
        model(tiny.prompts(batch, tokens), cache=cache, **options)


@pytest.mark.parametrize("version", ["4.57.0", "5.23.9", "5.25.0", "5.25.0.dev0", "6.0"])
def test_versions_it_has_not_run_with(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(UserError, match=rf"transformers {version} .*needed: >=5.24,<5.25; pip install"):
        check_version()


@pytest.mark.parametrize("version", ["5.24.0", "5.24.3", "5.24.1rc1"])
def test_versions_it_takes(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: version)
    check_version()


def test_no_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(UserError, match=r"transformers is not installed; needed: >=5.24"):
        check_version()


def test_other_models() -> None:
    llama = LlamaForCausalLM(
        LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    )
    with pytest.raises(UserError, match=r"model type llama, needed: minimax_m3_vl_text"):
        cache_for(llama)


def test_all_that_is_wrong_with_a_model_is_said_at_once() -> None:
    model = tiny.model(
        head_dim=64,
        index_head_dim=64,
        index_block_size=64,
        index_n_heads=4,
        attention_dropout=0.1,
        sliding_window=8,
    )
    with pytest.raises(UserError) as error:
        cache_for(model)
    for words in (
        "head_dim 64, needed: 128",
        "index_head_dim 64, needed: 128",
        "index_block_size 64, needed: 128",
        "index_n_heads 4, needed: 2",
        "attention_dropout 0.1, needed: 0",
        "sliding_window 8, needed: none",
    ):
        assert words in str(error.value)


def test_dense_layers_after_sparse_ones() -> None:
    model = tiny.model(1, 2, layer_types=["minimax_m3_sparse", "full_attention", "minimax_m3_sparse"])
    with pytest.raises(UserError, match=r"layer_types .*needed: full_attention layers first"):
        cache_for(model)


def test_dtypes_without_kernels() -> None:
    with pytest.raises(UserError, match=r"float64"):
        cache_for(tiny.model(dtype=torch.float64))


def test_a_model_that_was_refused_keeps_its_indexers() -> None:
    model = tiny.model(dtype=torch.float64)
    with pytest.raises(UserError):
        cache_for(model)
    assert not any(isinstance(module, PagedIndexer) for module in model.modules())


def test_an_indexer_that_others_have_wrapped(model: Any) -> None:
    indexer = model.model.layers[1].self_attn.indexer
    indexer.forward = indexer.forward
    with pytest.raises(UserError, match=r"indexers of layers 1 have been replaced or wrapped"):
        cache_for(model)


def test_padding_on_the_left(model: Any) -> None:
    with pytest.raises(UserError, match=r"sequence 1 is padded on the left, needed: padding on the right"):
        step(model, cache_for(model), attention_mask=torch.tensor([[1, 1, 1, 1], [0, 1, 1, 1]]))


def test_generating_from_padding_on_the_left(model: Any) -> None:
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 1]])
    with pytest.raises(UserError, match=r"padded on the left"):
        model.generate(tiny.prompts(2, 4), attention_mask=mask, cache=cache_for(model), max_new_tokens=2)


def test_a_mask_with_a_hole(model: Any) -> None:
    with pytest.raises(UserError, match=r"sequence 0 hides tokens"):
        step(model, cache_for(model), attention_mask=torch.tensor([[1, 0, 1, 1], [1, 1, 1, 1]]))


def test_a_mask_that_hides_what_is_cached(model: Any) -> None:
    cache = cache_for(model)
    step(model, cache)
    with pytest.raises(UserError, match=r"sequence 1 hides tokens"):
        step(model, cache, tokens=1, attention_mask=torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 1]]))


def test_a_mask_of_another_shape_than_causal(model: Any) -> None:
    tree = torch.ones(4, 4, dtype=torch.bool).tril()
    tree[2, 1] = False  # two drafts beside each other
    with pytest.raises(UserError, match=r"sequence 0 hides tokens, or is not causal"):
        step(model, cache_for(model), attention_mask=tree.expand(2, 1, 4, 4))


def test_a_mask_of_its_own_making(model: Any) -> None:
    with pytest.raises(UserError, match=r"attention_mask torch.float32 of \(2, 1, 4, 4\), needed"):
        step(model, cache_for(model), attention_mask=torch.zeros(2, 1, 4, 4))


def test_more_sequences_than_it_was_made_for(model: Any) -> None:
    with pytest.raises(UserError, match=r"batch has 3 sequences, the PagedCache was made for max_batch=2"):
        step(model, cache_for(model), batch=3)


def test_other_sequences_than_before(model: Any) -> None:
    cache = cache_for(model)
    step(model, cache)
    with pytest.raises(UserError, match=r"batch has 1 sequences, the PagedCache holds 2: reset\(\)"):
        step(model, cache, batch=1)


def test_longer_sequences_than_it_was_made_for(model: Any) -> None:
    with pytest.raises(UserError, match=r"would hold 257 tokens, the PagedCache was made for 256"):
        step(model, cache_for(model), tokens=257)


def test_more_pages_than_there_are(model: Any) -> None:
    cache = cache_for(model, pages=3)
    with pytest.raises(UserError, match=r"4 more pages .* and 3 of 3 are free: .* pages=4"):
        step(model, cache, tokens=129)
    assert len(cache.pool.free) == 3


def test_gradients(model: Any) -> None:
    with pytest.raises(UserError, match=r"torch.no_grad"):
        model(tiny.prompts(1, 4), cache=cache_for(model))


def test_beams(model: Any) -> None:
    with pytest.raises(UserError, match=r"num_beams=1"):
        model.generate(tiny.prompts(1, 4), cache=cache_for(model), num_beams=2, max_new_tokens=3)


@pytest.mark.parametrize("tokens", [1, -5])
def test_cropping_what_is_not_there(model: Any, tokens: int) -> None:
    cache = cache_for(model)
    step(model, cache)
    with pytest.raises(UserError, match=rf"crop\({tokens}\), needed: minus .* of 4 at most"):
        cache.crop(tokens)


def test_cropping_padded_sequences(model: Any) -> None:
    cache = cache_for(model)
    step(model, cache, attention_mask=torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]))
    with pytest.raises(UserError, match=r"crop of sequences that were padded"):
        cache.crop(-1)


def test_a_model_whose_attention_is_another(model: Any) -> None:
    cache = cache_for(model)
    model.set_attn_implementation("sdpa")
    with pytest.raises(UserError, match=r'set_attn_implementation\("m3gen"\)'):
        step(model, cache, tokens=1)


def test_a_model_whose_indexers_were_restored(model: Any) -> None:
    cache = cache_for(model)
    restore(model)
    with pytest.raises(UserError, match=r"layer 1 has transformers' own indexer"):
        step(model, cache, tokens=1)


def test_a_cache_that_is_closed(model: Any) -> None:
    cache = cache_for(model)
    cache.close()
    cache.close()
    with pytest.raises(RuntimeError, match=r"the PagedCache is closed"):
        step(model, cache)


def test_without_a_paged_cache_the_model_is_as_it_was(model: Any) -> None:
    ids = tiny.prompts(1, 300)
    stock, _ = tiny.generate(tiny.model(attention="sdpa"), ids, 2)
    cache_for(model)
    tokens, _ = tiny.generate(model, ids, 2, cache=DynamicCache(config=model.config))
    assert tokens.tolist() == stock.tolist()
    restore(model)
    assert not any(isinstance(module, PagedIndexer) for module in model.modules())
    assert tiny.generate(model, ids, 2)[0].tolist() == stock.tolist()
