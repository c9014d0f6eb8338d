"""One tiny checkpoint for all, and what transformers generates from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.vllm import tiny


@pytest.fixture(scope="session")
def tiny_model() -> Any:
    return tiny.model()


@pytest.fixture(scope="session")
def checkpoint(tiny_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny-m3")
    tiny.save(tiny_model, folder)
    return folder


@pytest.fixture(scope="session")
def expected(tiny_model: Any) -> Callable[[Sequence[Sequence[int]], int], list[list[int]]]:
    """Greedy tokens by transformers; each prompt is computed once."""
    known: dict[tuple[int, ...], list[int]] = {}

    def of(prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
        for prompt in map(tuple, prompts):
            if len(known.get(prompt, [])) < count:
                known[prompt] = tiny.greedy(tiny_model, prompt, count)
        return [known[tuple(prompt)][:count] for prompt in prompts]

    return of
