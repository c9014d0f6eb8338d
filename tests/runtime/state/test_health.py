"""In debug mode a fault on the device is seen, stays, and sends later steps to the stock path."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen.runtime import ModelState, Reason, StepInputs
from m3gen.testing.fake_kernels import FakeKernels, FakeOp
from tests.runtime.state.tiny import caches, settings, state


def ready(*, debug: bool = True, kernels: Any = None) -> ModelState:
    one = state(settings(debug=debug), kernels)
    one.initialize_kv_cache(caches())
    return one


def step(one: ModelState, **changed: Any) -> None:
    usual: dict[str, Any] = {
        "block_table": torch.tensor([[1, 2], [3, 99]], dtype=torch.int32),  # 99 is past the second's blocks
        "seq_lens": torch.tensor([200, 5], dtype=torch.int32),
        "slot_mapping": torch.tensor([400, -1]),
    }
    one.begin(one.plan(2, 1, 0, 200), StepInputs(**{**usual, **changed}))


def test_clean_steps_are_well() -> None:
    one = ready()
    step(one)
    one.layer(0).attend(torch.zeros(2, 8, 128), torch.zeros(2, 8, 128))
    one.postprocess_state()
    assert one.health().ok
    assert one.plan(1, 1, 0, 10).specialised


FAULTS = [
    (
        {"block_table": torch.tensor([[1, 8], [3, 0]], dtype=torch.int32)},
        "a block table named a page past the cache",
    ),
    ({"slot_mapping": torch.tensor([8 * 128, 0])}, "a slot lay past the cache"),
    ({"seq_lens": torch.tensor([257, 5], dtype=torch.int32)}, "a sequence was longer than its block table"),
    ({"seq_lens": torch.tensor([20, -1], dtype=torch.int32)}, "a sequence was longer than its block table"),
]


@pytest.mark.parametrize(("changed", "text"), FAULTS)
def test_inputs_that_cannot_be(changed: dict[str, torch.Tensor], text: str) -> None:
    one = ready()
    step(one, **changed)
    one.postprocess_state()
    step_is_stock = one.plan(1, 1, 0, 10)
    assert step_is_stock.reason is Reason.UNHEALTHY
    assert [error[: len(text)] for error in one.health().errors] == [text]


def test_an_output_that_is_nan_stays_seen() -> None:
    def spoil(q: Any, k: Any, v: Any, ids: Any, table: Any, lens: Any, out: torch.Tensor, **rest: Any) -> None:
        out.fill_(float("nan"))

    one = ready(kernels=FakeKernels(sparse_decode=FakeOp("sparse_decode", launch=spoil)))
    step(one)
    one.layer(1).attend(torch.zeros(2, 8, 128), torch.zeros(2, 8, 128))
    one.postprocess_state()
    for _ in range(2):
        assert one.health().errors == ("an output was NaN or infinite",)
        assert one.plan(1, 1, 0, 10).reason is Reason.UNHEALTHY


def test_a_list_with_an_id_below_minus_one() -> None:
    one = ready()
    step(one)
    ids = torch.full((2, 2, 2), -7, dtype=torch.int32)
    one.layer(1).attend(torch.zeros(2, 8, 128), torch.zeros(2, 8, 128), ids=ids)
    assert one.health().errors == ("a list of blocks held an id below -1",)


def test_nothing_is_watched_without_debug() -> None:
    one = ready(debug=False)
    step(one, **FAULTS[0][0])
    one.postprocess_state()
    assert one.health().ok
    assert one.plan(1, 1, 0, 10).specialised


def test_the_word_is_not_read_while_a_graph_is_captured() -> None:
    """Reading would wait for the device, which a capture cannot."""
    one = state(settings(debug=True), capturing=lambda: capturing)
    capturing = False
    one.initialize_kv_cache(caches())
    step(one, **FAULTS[0][0])
    capturing = True
    one.postprocess_state()
    assert one.plan(1, 1, 0, 10).specialised
    capturing = False
    one.postprocess_state()
    assert one.plan(1, 1, 0, 10).reason is Reason.UNHEALTHY
