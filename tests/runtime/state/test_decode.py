"""A layer's whole decode in Triton's interpreter, step after step, against the model's own arithmetic in float64."""

from __future__ import annotations

import pytest
import torch

from m3gen import runtime
from m3gen.codegen import build
from tests.runtime.state.layers import check_parts, check_steps


@pytest.mark.parametrize(("dtype", "query_len"), [(torch.float32, 1), (torch.float32, 4), (torch.bfloat16, 1)])
def test_steps_of_a_layer_are_the_models_arithmetic(dtype: torch.dtype, query_len: int) -> None:
    check_steps(runtime.load("gfx942", build=build), dtype, query_len)


def test_an_engine_that_norms_stores_selects_and_attends_by_itself() -> None:
    check_parts(runtime.load("gfx942", build=build))
