"""The life of a state: profiling cache, real cache, teardown, close; and what it must not leave behind."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import pytest
import torch

from m3gen.runtime import LayerCache, Limits, ModelState, Reason, StepInputs
from m3gen.testing.fake_kernels import FakeKernels, FakeOp
from tests.runtime.state.tiny import LIMITS, SPEC, caches, settings, state


def inputs(requests: int = 2, query_len: int = 1) -> StepInputs:
    return StepInputs(
        block_table=torch.zeros(requests, 8, dtype=torch.int32),
        seq_lens=torch.ones(requests, dtype=torch.int32),
        positions=torch.zeros(requests * query_len, dtype=torch.int64),
        slot_mapping=torch.zeros(requests * query_len, dtype=torch.int64),
    )


def attend(of: ModelState, layer: Any) -> None:
    of.begin(of.plan(2, 1, 0, 100), inputs())
    layer.attend(torch.zeros(2, 8, 128), torch.zeros(2, 8, 128))


def test_a_profiling_cache_then_the_real_one() -> None:
    one = state()
    assert one.plan(1, 1, 0, 10).reason is Reason.NO_CACHE
    first = one.initialize_kv_cache(caches(pages=2), profiling=True)
    assert (first.profiling, first.generation) == (True, 1)
    profiled = one.layer(1)
    attend(one, profiled)
    one.release_kv_cache()
    assert one.plan(1, 1, 0, 10).reason is Reason.NO_CACHE
    second = one.initialize_kv_cache(caches())
    assert (second.profiling, second.generation) == (False, 2)
    attend(one, one.layer(1))
    with pytest.raises(RuntimeError, match="nothing to launch: no KV cache is bound"):
        attend(one, profiled)


def test_the_first_cache_is_freed_when_the_second_is_bound() -> None:
    one = state()
    cache = caches()
    watched = [
        weakref.ref(part) for layer in cache.values() for part in (layer.kv, layer.index) if part is not None
    ]
    one.initialize_kv_cache(cache)
    kept = one.layer(0)  # an engine keeps its layers
    del cache
    one.initialize_kv_cache(caches())
    gc.collect()
    assert [ref() for ref in watched] == [None] * 3
    assert kept.layer == 0


def test_the_same_address_with_another_shape_is_another_cache() -> None:
    """A cache keyed by its address alone keeps the old views when an allocator gives the address out again."""
    store = torch.zeros(16 * 2 * 128 * 256)
    one = state()
    rest = caches()
    index = rest[1].index
    for pages in (8, 16, 8):
        kv = store[: pages * 2 * 128 * 256].view(pages, 2, 128, 256)
        binding = one.initialize_kv_cache({0: LayerCache(kv=kv), 1: LayerCache(kv=kv, index=index)})
        assert binding.layers[0].k.shape[0] == pages
        assert one.layer(0)._cache.k.shape[0] == pages
    assert binding.generation == 3


def test_binding_during_capture_is_refused() -> None:
    capturing = False
    one = state(capturing=lambda: capturing)
    bound = one.initialize_kv_cache(caches())
    capturing = True
    for refused in (lambda: one.initialize_kv_cache(caches()), one.release_kv_cache):
        with pytest.raises(RuntimeError, match="while a graph is captured"):
            refused()
    assert one.binding is bound
    attend(one, one.layer(0))  # launches are what is captured


def test_a_cache_that_is_refused_leaves_none_bound() -> None:
    one = state()
    one.initialize_kv_cache(caches())
    with pytest.raises(Exception, match=r"expected torch\.float32"):
        one.initialize_kv_cache(caches(dtype=torch.float16))
    assert one.binding is None
    assert one.plan(1, 1, 0, 10).reason is Reason.NO_CACHE


def test_close_twice() -> None:
    one = state()
    one.initialize_kv_cache(caches())
    layer = one.layer(0)
    for _ in range(2):
        one.close()
        assert one.closed
        assert one.plan(1, 1, 0, 10).reason is Reason.CLOSED
    with pytest.raises(RuntimeError, match="cannot bind a KV cache: the state is closed"):
        one.initialize_kv_cache(caches())
    with pytest.raises(RuntimeError, match="nothing to launch"):
        layer.attend(torch.zeros(1, 8, 128), torch.zeros(1, 8, 128))
    one.release_kv_cache()
    assert one.plan(1, 1, 0, 10).reason is Reason.CLOSED


def test_a_state_that_is_dropped_lets_go_of_its_cache(caplog: pytest.LogCaptureFixture) -> None:
    """An engine's shutdown only deletes it."""
    one = state()
    cache = caches()
    watched = weakref.ref(cache[0].kv)
    one.initialize_kv_cache(cache)
    kept = one.layer(0)
    del cache
    with caplog.at_level("INFO", logger="m3gen.runtime"):
        del one
        gc.collect()
    assert watched() is None
    assert kept.is_sparse is False
    assert caplog.messages == ["model state closed"]


def test_construction_that_fails_half_way_leaves_nothing_behind() -> None:
    def no_memory(rows: int, kv_heads: int, group_size: int) -> Any:
        raise MemoryError("no room for the workspace")

    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(found), torch.Tensor) for found in gc.get_objects())

    before = tensors()
    kernels = FakeKernels(dense_decode=FakeOp("dense_decode", workspace=no_memory))
    with pytest.raises(MemoryError, match="no room for the workspace"):
        state(kernels=kernels)
    assert tensors() == before


def test_ten_thousand_steps_take_no_memory() -> None:
    one = state()
    one.initialize_kv_cache(caches())
    layer = one.layer(1)
    q, index_q, out = torch.zeros(2, 8, 128), torch.zeros(2, 2, 128), torch.zeros(2, 8, 128)
    given = inputs()

    def step(number: int) -> None:
        one.add_request(str(number))
        plan = one.plan(2 if number % 7 else 9, 1, number % 3, 100 + number % 900)
        if plan.specialised:
            one.begin(plan, given)
            layer.select(index_q)
            layer.attend(q, out)
        one.postprocess_state()
        one.remove_request(str(number - 3))

    for number in range(1000):
        step(number)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(10_000):
            step(number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 4096
    counters = one.counters
    assert counters.steps == 11_000
    assert counters.fallbacks == {Reason.TOO_MANY_REQUESTS: counters.steps - counters.specialised}


def test_a_model_length_that_shrinks_after_construction() -> None:
    length = 1024
    limits = Limits(max_requests=4, max_model_len=lambda: length)
    one = state(settings(limits=limits))
    length = 300
    one.initialize_kv_cache(caches())
    assert one.max_tokens >= 1024
    assert one.plan(1, 1, 0, 300).specialised


def test_a_model_length_that_grows_gets_buffers_at_the_next_binding() -> None:
    length = 1024
    limits = Limits(max_requests=4, max_model_len=lambda: length)
    one = state(settings(limits=limits))
    one.initialize_kv_cache(caches())
    length = 8192
    assert one.plan(1, 1, 0, 8192).reason is Reason.TOO_LONG
    one.initialize_kv_cache(caches())
    assert one.plan(1, 1, 0, 8192).specialised


def test_unknown_requests_come_and_go() -> None:
    one = state()
    one.remove_request("never seen")
    one.add_request("a")
    one.remove_request("a")
    one.remove_request("a")


def test_a_kernel_is_bound_for_each_op_and_query_length() -> None:
    kernels = FakeKernels()
    one = state(kernels=kernels)
    assert [problem.query_len for problem in kernels["sparse_decode"].problems] == list(LIMITS.query_lens)
    assert len(one.explain()) == 2 * 2 * 4  # query lengths, fake edges, ops
    assert one.settings.spec is SPEC
