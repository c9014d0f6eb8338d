"""Requests that come in parts, share prefixes, wait, are aborted and come again; and the engine's end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.vllm import tiny
from tests.integrations.vllm.serving import engine, generate, needs_vllm, runtime_state

Tokens = Callable[[list[list[int]], int], list[list[int]]]


@needs_vllm
def test_chunked_prefill_shared_prefixes_aborts_and_the_end(
    checkpoint: Path, expected: Tokens, m3gen_config: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    first, second, short = tiny.prompt(640), tiny.prompt(500), tiny.prompt(60)
    sharing = first[:384] + second[:100]  # three whole pages of the first prompt
    prompts, count = [first, second, short, sharing], 6
    options: dict[str, Any] = {
        "max_num_seqs": 2,
        "max_num_batched_tokens": 256,
        "enable_chunked_prefill": True,
        "enable_prefix_caching": True,
    }
    caplog.set_level(logging.INFO, logger="m3gen.runtime")
    with engine(checkpoint, additional_config=m3gen_config, **options) as llm:
        assert generate(llm, prompts, count) == expected(prompts, count)
        assert abort_and_ask_again(llm, first, count) == expected([first], count)[0]
        state = runtime_state(llm)
        counters = state.counters
        assert {requests for requests, _ in counters.sizes} == {1, 2}
        assert "model state closed" not in caplog.text
    assert caplog.text.count("model state closed") == 1
    assert state.closed


def abort_and_ask_again(llm: Any, prompt: list[int], count: int) -> list[int]:
    """A request under an id, aborted after three steps; the same id again, to its end. Its tokens."""
    from vllm import SamplingParams

    core = llm.llm_engine
    sampling = SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, detokenize=False)
    core.add_request("again", {"prompt_token_ids": prompt}, sampling)
    for _ in range(3):
        core.step()
    core.abort_request(["again"])
    core.abort_request(["never seen"])
    core.add_request("again", {"prompt_token_ids": prompt}, sampling)
    finished: list[list[int]] = []
    while core.has_unfinished_requests():
        finished += [list(answer.outputs[0].token_ids) for answer in core.step() if answer.finished]
    assert len(finished) == 1
    return finished[0]
