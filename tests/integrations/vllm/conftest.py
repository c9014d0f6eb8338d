"""One tiny checkpoint for all, what transformers generates from it, and tables for an engine that serves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from m3gen.runtime.problems import ops_of, problem
from m3gen.runtime.settings import Limits, Settings
from m3gen.spec import ModelSpec
from tests.integrations.vllm import kernels, tiny


@pytest.fixture(scope="session")
def tiny_model() -> Any:
    return tiny.model()


@pytest.fixture(scope="session")
def checkpoint(tiny_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny-m3")
    tiny.save(tiny_model, folder)
    return folder


@pytest.fixture(scope="session")
def stock(tiny_model: Any) -> Callable[[Sequence[Sequence[int]], int], list[list[int]]]:
    """Greedy tokens by transformers as it is."""
    return lambda prompts, count: [tiny.greedy(tiny_model, prompt, count) for prompt in prompts]


@pytest.fixture(scope="session")
def expected(tiny_model: Any) -> Callable[[Sequence[Sequence[int]], int], list[list[int]]]:
    """Greedy tokens by transformers with vLLM's index dtype; what is known of a prompt is not computed again."""
    known: dict[tuple[int, ...], list[int]] = {}

    def of(prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
        for prompt in map(tuple, prompts):
            if len(known.get(prompt, [])) < count:
                with tiny.bf16_index():
                    known[prompt] = tiny.greedy(tiny_model, prompt, count)
        return [known[tuple(prompt)][:count] for prompt in prompts]

    return of


@pytest.fixture(scope="session")
def m3gen_config(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """`additional_config` of an engine of up to 4 requests: tables of its own, Triton's interpreter."""
    spec = ModelSpec(
        layers=tiny.LAYERS, dense_layers=0, hidden=128, q_heads=8, kv_heads=2, index_heads=2, topk=tiny.TOPK
    )
    settings = Settings(
        arch=kernels.ARCH,
        limits=Limits(max_requests=4, query_lens=(1, 4), max_model_len=1024),
        spec=spec,
        dtype=torch.float32,
        kv_dtype=torch.float32,
        index_dtype=torch.bfloat16,
        norm=False,
    )
    problems = [
        problem(op, settings, query_len).with_load(4 * query_len)
        for op in ops_of(settings)
        for query_len in settings.limits.query_lens
    ]
    tables = kernels.make(tmp_path_factory.mktemp("tables"), problems)
    return {"m3gen": {"arch": kernels.ARCH, "tables": str(tables)}}
