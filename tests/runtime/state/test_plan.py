"""Who runs a step: decided from integers, the same on every rank, with a reason that is counted."""

from __future__ import annotations

from functools import cache
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from m3gen.runtime import GraphMode, Limits, ModelState, NormWeights, Reason, StepInputs
from m3gen.testing.fake_kernels import FakeKernels, FakeOp, Recorder
from tests.runtime.state.tiny import caches, settings, state

LIMITS = Limits(max_requests=4, query_lens=(1, 4), max_model_len=1024, capture_requests=(1, 2, 4))


@pytest.fixture
def ready() -> ModelState:
    one = state(settings(limits=LIMITS))
    one.initialize_kv_cache(caches())
    return one


@cache
def ranks() -> list[ModelState]:
    """Two of one model."""
    made = [state(settings(limits=LIMITS)) for _ in range(2)]
    for rank in made:
        rank.initialize_kv_cache(caches(pages=1))
    return made


FULL = GraphMode.FULL
STEPS: list[tuple[dict[str, Any], Reason]] = [
    ({"requests": 1}, Reason.NONE),
    ({"requests": 4}, Reason.NONE),
    ({"requests": 4, "query_len": 4}, Reason.NONE),
    ({"requests": 2, "prefill_tokens": 700}, Reason.NONE),  # a mixed step: stock prefills
    ({"requests": 0, "prefill_tokens": 700}, Reason.NO_DECODE),
    ({"requests": 0}, Reason.NO_DECODE),  # a profiling run
    ({"requests": 5}, Reason.TOO_MANY_REQUESTS),
    ({"requests": 3, "padded_requests": 8}, Reason.TOO_MANY_REQUESTS),
    ({"requests": 1, "query_len": 2}, Reason.QUERY_LEN),
    ({"requests": 1, "query_len": 0}, Reason.QUERY_LEN),
    ({"requests": 1, "query_len": 5}, Reason.QUERY_LEN),
    ({"requests": 1, "max_seq_len": 2048}, Reason.NONE),  # score rows are rounded up
    ({"requests": 1, "max_seq_len": 2049}, Reason.TOO_LONG),
    ({"requests": 3, "padded_requests": 4, "graph": FULL}, Reason.NONE),
    ({"requests": 3, "graph": FULL}, Reason.GRAPH),
    ({"requests": 2, "prefill_tokens": 1, "graph": FULL}, Reason.GRAPH),
]


@pytest.mark.parametrize(("step", "reason"), STEPS)
def test_a_step(ready: ModelState, step: dict[str, Any], reason: Reason) -> None:
    plan = ready.plan(**{"query_len": 1, "prefill_tokens": 0, "max_seq_len": 100, **step})
    assert plan.reason is reason
    assert plan.specialised is (reason is Reason.NONE)
    counters = ready.counters
    assert counters.fallbacks == ({} if plan.specialised else {reason: 1})
    if plan.specialised:
        size = (max(step["requests"], step.get("padded_requests", 0)), step.get("query_len", 1))
        assert (plan.requests, plan.query_len) == size
        assert counters.sizes == {size: 1}


def test_any_size_is_captured_where_none_is_named() -> None:
    one = state(settings(limits=Limits(max_requests=4, max_model_len=1024)))
    one.initialize_kv_cache(caches())
    assert one.plan(3, 1, 0, 100, 0, GraphMode.FULL).specialised


@hypothesis.settings(deadline=None)
@given(
    requests=st.integers(0, 6),
    query_len=st.integers(0, 6),
    prefill=st.integers(0, 2),
    longest=st.integers(0, 4096),
    padded=st.integers(0, 6),
    graph=st.sampled_from(GraphMode),
)
def test_ranks_decide_alike_and_never_past_a_limit(
    requests: int, query_len: int, prefill: int, longest: int, padded: int, graph: GraphMode
) -> None:
    plans = [rank.plan(requests, query_len, prefill, longest, padded, graph) for rank in ranks()]
    assert plans[0].reason is plans[1].reason
    assert repr(plans[0]) == repr(plans[1])
    if plans[0].specialised:
        assert 1 <= max(requests, padded) <= 4
        assert query_len in (1, 4)
        assert longest <= ranks()[0].max_tokens
    else:
        assert plans[0].reason.words in repr(plans[0])


def test_plans_and_buffers_are_the_same_objects_every_step(ready: ModelState) -> None:
    first, second = ready.plan(2, 1, 0, 100), ready.plan(2, 1, 5, 700)
    assert first is second
    wider = ready.plan(4, 4, 0, 100)
    assert wider.ids.data_ptr() == first.ids.data_ptr()
    assert tuple(wider.ids.shape) == (2, 16, 2)
    assert tuple(wider.scores.shape) == (2, 16, 16)
    assert tuple(wider.q.shape) == (16, 8, 128)


def test_a_kernel_is_chosen_by_rows() -> None:
    """Row counts up to the fake's edge have one kernel, more another; each finds its workspace."""
    launch = Recorder()
    one = state(settings(limits=LIMITS), FakeKernels(sparse_decode=FakeOp("sparse_decode", launch=launch)))
    one.initialize_kv_cache(caches())
    for requests, query_len in ((1, 1), (4, 4)):
        plan = one.plan(requests, query_len, 0, 100)
        plan.attend("q")
    (_, small), (_, large) = launch.calls
    assert small["partial_out"] is large["partial_out"]
    assert small["partial_out"].numel() == 2 * 16 * 8 * 128
    assert (small["query_len"], large["query_len"]) == (1, 4)
    assert small["check"] is False
    assert small["softmax_scale"] == 128**-0.5


def test_tensors_of_another_size_than_planned_are_refused(ready: ModelState) -> None:
    plan = ready.plan(2, 4, 0, 100)
    table, lens = torch.zeros(2, 8, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    with pytest.raises(ValueError, match=r"the step has 2 rows of block_table and 3 of seq_lens, expected the 2"):
        ready.begin(plan, StepInputs(table, torch.zeros(3, dtype=torch.int32)))
    with pytest.raises(ValueError, match=r"slot_mapping has 2 rows, expected the 8 of Plan\(2 requests of 4\)"):
        ready.begin(plan, StepInputs(table, lens, slot_mapping=torch.zeros(2, dtype=torch.int64)))


def test_a_block_table_wider_than_the_scores_is_cut_for_the_scorer(ready: ModelState) -> None:
    plan = ready.plan(1, 1, 0, 100)
    table = torch.zeros(1, 99, dtype=torch.int32)
    ready.begin(plan, StepInputs(table, torch.ones(1, dtype=torch.int32)))
    assert tuple(ready._now.index_block_table.shape) == (1, 16)
    assert ready._now.block_table is table


def test_the_index_cache_has_the_pages_of_the_main_one_unless_told(ready: ModelState) -> None:
    plan = ready.plan(1, 1, 0, 100)
    table, other = torch.zeros(2, 1, 8, dtype=torch.int32)
    slots, other_slots = torch.zeros(2, 1, dtype=torch.int64)
    lens = torch.ones(1, dtype=torch.int32)
    ready.begin(plan, StepInputs(table, lens, slot_mapping=slots))
    assert ready._now.index_block_table is table
    assert ready._now.index_slot_mapping is slots
    ready.begin(
        plan, StepInputs(table, lens, slot_mapping=slots, index_block_table=other, index_slot_mapping=other_slots)
    )
    assert ready._now.index_block_table is other
    assert ready._now.index_slot_mapping is other_slots


def test_after_a_step_its_tensors_are_let_go(ready: ModelState) -> None:
    layer = ready.layer(0)
    ready.begin(ready.plan(1, 1, 0, 100), StepInputs(torch.zeros(1, 8).int(), torch.ones(1).int()))
    ready.postprocess_state()
    with pytest.raises(RuntimeError, match="nothing to launch: the step has no decode request"):
        layer.attend(torch.zeros(1, 8, 128), torch.zeros(1, 8, 128))


def test_planning_and_dispatch_run_no_torch_op(ready: ModelState) -> None:
    """Nothing is allocated, copied or waited for: between the engine and a launch there is no operator at all."""

    class Counting(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen += 1
            return function(*args, **(kwargs or {}))

    rows = torch.zeros(2, dtype=torch.int64)
    given = StepInputs(torch.zeros(2, 8).int(), torch.ones(2).int(), rows, rows)
    q, out, weight = torch.zeros(2, 8, 128), torch.zeros(2, 8, 128), torch.zeros(128)
    weights = NormWeights(weight, weight, torch.zeros(1, 64), weight, weight)
    dense, sparse = ready.layer(0), ready.layer(1)
    with Counting() as counting:
        for _ in range(3):
            ready.begin(ready.plan(2, 1, 0, 100), given)
            dense.run(q, weights, out)
            sparse.run(q, weights, out)
            ready.postprocess_state()
        assert counting.seen == 0
        torch.zeros(1)
        assert counting.seen == 1
