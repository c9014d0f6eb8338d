"""m3gen's model classes, over those of both platforms."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.integrations.vllm.serving import needs_vllm

KINDS = ("MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration")


def over(platform: str, kind: str, enabled: bool) -> Any:
    """An instance without weights of m3gen's class over a platform's."""
    from m3gen.integrations.vllm.model import _WithState

    base = getattr(importlib.import_module(f"vllm.models.minimax_m3.{platform}.model"), kind)
    made = object.__new__(type(f"M3gen{kind}", (_WithState, base), {}))
    object.__setattr__(made, "m3gen_enabled", enabled)
    return made


@needs_vllm
@pytest.mark.parametrize("platform", ["nvidia", "amd"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_runner_gets_m3gens_state(platform: str, kind: str) -> None:
    from m3gen.integrations.vllm.state import M3genModelState

    assert over(platform, kind, enabled=True).get_model_state_cls() is M3genModelState


@needs_vllm
@pytest.mark.parametrize("platform", ["nvidia", "amd"])
def test_an_engine_that_switched_m3gen_off_gets_vllms_own(platform: str) -> None:
    from vllm.v1.worker.gpu.model_states.default import DefaultModelState

    found = over(platform, KINDS[0], enabled=False).get_model_state_cls()
    assert issubclass(found, DefaultModelState)
    assert found.__module__.startswith("vllm.")


@needs_vllm
def test_images_are_processed_as_by_the_stock_class() -> None:
    from vllm.models.minimax_m3 import MiniMaxM3SparseForConditionalGeneration

    from m3gen.integrations.vllm.model import M3genForConditionalGeneration

    assert (
        M3genForConditionalGeneration._processor_factory
        is MiniMaxM3SparseForConditionalGeneration._processor_factory
    )
    assert M3genForConditionalGeneration.supports_multimodal
