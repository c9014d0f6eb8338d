"""m3gen in the real vLLM: what it serves is what transformers generates, and m3gen's kernels served it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from m3gen.runtime import Reason, Refused
from tests.integrations.vllm import tiny
from tests.integrations.vllm.serving import engine, generate, model_runner, needs_vllm, runtime_state

Tokens = Callable[[list[list[int]], int], list[list[int]]]
SPARSE = sum(tiny.IS_SPARSE)


@needs_vllm
def test_greedy_tokens_are_those_of_transformers(
    checkpoint: Path, stock: Tokens, m3gen_config: dict[str, Any]
) -> None:
    import stand_ops

    prompts, count = [tiny.prompt(700), tiny.prompt(620), tiny.prompt(40)], 17
    stand_ops.DECODE_ROWS.clear()
    with engine(checkpoint, additional_config=m3gen_config) as llm:
        assert generate(llm, prompts, count) == stock(prompts, count)
        state = runtime_state(llm)
        counters, kernels = state.counters, state.explain()
    steps = count - 1  # the first token is the prefill's
    assert stand_ops.DECODE_ROWS.total() == 0
    assert counters.sizes == {(len(prompts), 1): steps}
    assert counters.fallbacks == {Reason.NO_DECODE: 1}
    for op in ("index_select", "sparse_decode"):
        assert counters.launches[op] == steps * SPARSE
    assert any(line.startswith("sparse_decode") and "override table" in line for line in kernels)


@needs_vllm
def test_selection_by_rounded_index_keys_as_vllm_stores_them(
    checkpoint: Path, stock: Tokens, expected: Tokens, m3gen_config: dict[str, Any]
) -> None:
    """A prompt where the rounding alone changes tokens: m3gen selects by what is in the cache."""
    prompts, count = [tiny.prompt(660)], 17
    with engine(checkpoint, additional_config=m3gen_config, max_num_seqs=1) as llm:
        assert generate(llm, prompts, count) == expected(prompts, count)
    assert expected(prompts, count) != stock(prompts, count)


@needs_vllm
def test_steps_between_two_caches_are_vllms_own(
    checkpoint: Path, expected: Tokens, m3gen_config: dict[str, Any]
) -> None:
    """As on a GPU: a profiling cache, captured and freed; steps without a cache; the real one."""
    import stand_ops

    prompts, count = [tiny.prompt(300)], 4
    stand_ops.DECODE_ROWS.clear()
    with engine(checkpoint, additional_config=m3gen_config) as llm:
        runner, state = model_runner(llm), runtime_state(llm)
        blocks, runner.cache_config.num_gpu_blocks = runner.cache_config.num_gpu_blocks, None
        runner.model_state.initialize_kv_cache(runner.kv_cache_config, runner.block_tables)
        assert state.binding.profiling
        runner.model_state.capture_inner_cudagraphs(None, None, None, None)
        assert state.binding is None
        assert generate(llm, prompts, count) == expected(prompts, count)
        assert state.counters.fallbacks == {Reason.NO_CACHE: count}
        assert dict(stand_ops.DECODE_ROWS) == dict.fromkeys(("index", "attention"), (count - 1) * SPARSE)
        runner.cache_config.num_gpu_blocks = blocks
        runner.model_state.initialize_kv_cache(runner.kv_cache_config, runner.block_tables)
        assert not state.binding.profiling
        assert generate(llm, prompts, count) == expected(prompts, count)
        assert state.counters.specialised == count - 1


@needs_vllm
def test_what_cannot_be_served_is_refused_when_the_engine_starts(checkpoint: Path) -> None:
    with pytest.raises(Refused) as caught, engine(checkpoint, additional_config={"m3gen": {}}):
        pass
    assert "no GPU that m3gen knows is here" in str(caught.value)


@needs_vllm
def test_drafts_are_verified_four_tokens_at_a_time(
    checkpoint: Path, expected: Tokens, m3gen_config: dict[str, Any]
) -> None:
    prompts, count = [tiny.prompt(520), tiny.prompt(500)], 8
    drafts = {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 2,
        "prompt_lookup_min": 1,
    }
    with engine(checkpoint, additional_config=m3gen_config, speculative_config=drafts) as llm:
        assert generate(llm, prompts, count) == expected(prompts, count)
        sizes = runtime_state(llm).counters.sizes
    assert sum(steps for (_, query_len), steps in sizes.items() if query_len == 4) > 0
