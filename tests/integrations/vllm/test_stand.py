"""The stand by itself: vLLM as it is, its own operators in torch. What differs elsewhere is then m3gen's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.integrations.vllm import tiny
from tests.integrations.vllm.serving import engine, generate, needs_vllm

Tokens = Callable[[list[list[int]], int], list[list[int]]]


@needs_vllm
def test_without_m3gen_the_stand_serves_what_transformers_generates(checkpoint: Path, expected: Tokens) -> None:
    import stand_ops

    prompts = [tiny.prompt(length) for length in (400, 330, 40)]
    stand_ops.DECODE_ROWS.clear()
    with engine(checkpoint, additional_config={"m3gen": {"enabled": False}}) as llm:
        assert generate(llm, prompts, 6) == expected(prompts, 6)
    rows = 5 * len(prompts) * sum(tiny.IS_SPARSE)  # the first token is the prefill's
    assert dict(stand_ops.DECODE_ROWS) == {"index": rows, "attention": rows}
