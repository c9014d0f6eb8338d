"""An engine of the real vLLM in this process, from a tiny checkpoint to its shutdown."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NO_VLLM = importlib.util.find_spec("vllm") is None
NO_STAND = "stand" not in str(getattr(sys.modules.get("sitecustomize"), "__file__", ""))
needs_vllm = pytest.mark.skipif(
    NO_VLLM or NO_STAND, reason="needs vLLM in the CPU test stand: run .ci/vllm, which sets both up"
)


@contextmanager
def engine(checkpoint: Path, **options: Any) -> Iterator[Any]:
    """`vllm.LLM` for a checkpoint of `tiny`, eager and in fp32; gone at the end, and with it its global state."""
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    from vllm import LLM
    from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

    usual: dict[str, Any] = {
        "dtype": "float32",
        "enforce_eager": True,
        "skip_tokenizer_init": True,
        "kv_cache_memory_bytes": 64 << 20,
        "max_model_len": 1024,
        "max_num_seqs": 4,
        "block_size": 128,
        "enable_prefix_caching": False,
    }
    llm = None
    try:
        llm = LLM(str(checkpoint), **{**usual, **options})
        yield llm
    finally:
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
            del llm
        cleanup_dist_env_and_memory()


def generate(llm: Any, prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """`count` greedy tokens after each prompt, all prompts at once."""
    from vllm import SamplingParams

    asked = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
    sampling = SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, detokenize=False)
    answers = llm.generate(asked, sampling, use_tqdm=False)
    return [list(answer.outputs[0].token_ids) for answer in answers]


def model_runner(llm: Any) -> Any:
    """vLLM's model runner of an engine in this process."""
    return llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner


def runtime_state(llm: Any) -> Any:
    """The `m3gen.runtime.ModelState` that the engine's model runner holds."""
    return model_runner(llm).model_state.m3gen
