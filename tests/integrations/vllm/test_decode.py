"""m3gen in the real vLLM: what it serves is what transformers generates, and m3gen's kernels served it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from m3gen.runtime import Reason
from tests.integrations.vllm import tiny
from tests.integrations.vllm.serving import engine, generate, needs_vllm, runtime_state

Tokens = Callable[[list[list[int]], int], list[list[int]]]
SPARSE = sum(tiny.IS_SPARSE)


@needs_vllm
def test_greedy_tokens_are_those_of_transformers(
    checkpoint: Path, stock: Tokens, m3gen_config: dict[str, Any]
) -> None:
    import stand_ops

    prompts, count = [tiny.prompt(700), tiny.prompt(640), tiny.prompt(40)], 17
    stand_ops.DECODE_ROWS.clear()
    with engine(checkpoint, additional_config=m3gen_config) as llm:
        assert generate(llm, prompts, count) == stock(prompts, count)
        state = runtime_state(llm)
        counters, kernels = state.counters, state.explain()
    steps = count - 1  # the first token is the prefill's
    assert stand_ops.DECODE_ROWS.total() == 0
    assert counters.sizes == {(len(prompts), 1): steps}
    assert counters.fallbacks == {Reason.NO_DECODE: 1}
    for op in ("index_score", "index_topk", "sparse_decode"):
        assert counters.launches[op] == steps * SPARSE
    assert any(line.startswith("sparse_decode") and "override table" in line for line in kernels)


@needs_vllm
def test_selection_by_rounded_index_keys_as_vllm_stores_them(
    checkpoint: Path, stock: Tokens, expected: Tokens, m3gen_config: dict[str, Any]
) -> None:
    """A prompt where the rounding alone changes tokens: m3gen selects by what is in the cache."""
    prompts, count = [tiny.prompt(620)], 17
    with engine(checkpoint, additional_config=m3gen_config, max_num_seqs=1) as llm:
        assert generate(llm, prompts, count) == expected(prompts, count)
    assert expected(prompts, count) != stock(prompts, count)


@needs_vllm
def test_without_tables_kernels_are_built_for_the_model(checkpoint: Path, expected: Tokens) -> None:
    prompts = [tiny.prompt(300)]
    with engine(checkpoint, additional_config={"m3gen": {"arch": "gfx942"}}, max_num_seqs=1) as llm:
        assert generate(llm, prompts, 3) == expected(prompts, 3)
        state = runtime_state(llm)
        assert state.counters.specialised == 2
        assert all("built on the spot" in line for line in state.explain())


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
