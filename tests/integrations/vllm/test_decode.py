"""m3gen in the real vLLM: what it serves is what transformers generates, and m3gen's kernels served it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.integrations.vllm import tiny
from tests.integrations.vllm.serving import engine, generate, needs_vllm, runtime_state

Expected = Callable[[list[list[int]], int], list[list[int]]]
GFX942 = {"m3gen": {"arch": "gfx942"}}


@needs_vllm
def test_greedy_tokens_are_those_of_transformers(checkpoint: Path, expected: Expected) -> None:
    import stand_ops

    prompts = tiny.prompts([600, 330, 40])
    stand_ops.DECODE_ROWS.clear()
    with engine(checkpoint, additional_config=GFX942) as llm:
        assert generate(llm, prompts, 6) == expected(prompts, 6)
        counters = runtime_state(llm).counters
    print(counters)
    assert not stand_ops.DECODE_ROWS
    assert counters.sizes[3, 1] == 5
