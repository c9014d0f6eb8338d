from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.evaluate.sample import loads, materialise
from m3gen.ops.coverage import ALL, LOADS, QUICK
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3, ExactProblem, Problem
from m3gen.targets import default_device
from tests.problems import dense_decode, sparse_decode


def _problems() -> list[Problem]:
    """Quick ones of one architecture, those with a scale for each token of the other."""
    every = [ops.get(name) for name in ops.names()]
    planes = replace(ALL, usual_dtypes=(), long_queries=(), loads=LOADS[:1])
    found = [one for one in planes.problems(every, default_device("gfx950")) if one.kv_scale == "per_token_head"]
    return [*QUICK.problems(every, default_device("gfx942")), *found]


PROBLEMS = _problems()
over_all = pytest.mark.parametrize(
    "problem", PROBLEMS, ids=[f"{one.op}-{one.arch}-{one.kv_dtype}-{one.kv_scale}" for one in PROBLEMS]
)


def default(problem: Problem) -> Config:
    return ops.get(problem.op).default(problem, default_device(problem.arch))


def trips(problem: Problem, config: Config) -> float:
    return max(work.loop_trips for work in ops.get(problem.op).work(problem, config))


def arguments(problem: Problem, context: int = 4096) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those made and those of the example, for one request."""
    op, config = ops.get(problem.op), default(problem)
    load = ExactProblem.of(problem, problem.query_len, context)
    return materialise(op, load, config), op.example(load, config)


# loads


@over_all
def test_two_loads_where_iterations_differ_else_one(problem: Problem) -> None:
    config = default(problem)
    found = list(loads(ops.get(problem.op), problem, config))
    contexts = [problem.page_size << n for n in range(10)]
    possible = {trips(ExactProblem.of(problem, problem.query_len, context), config) for context in contexts}
    counts = [trips(load, config) for load in found]
    assert len(counts) == min(2, len(possible))
    assert counts == sorted(set(counts))
    assert set(counts) <= possible
    assert {load.rows for load in found} == {problem.query_len}


def test_loads_have_few_iterations_where_that_is_possible() -> None:
    problem, _ = dense_decode(rows=256, context=131072)
    op, config = ops.get("dense_decode"), default(problem)
    assert trips(problem, config) > 100
    assert [trips(load, config) for load in loads(op, problem, config)] == [4, 8]  # a page, two pages


def test_loads_do_not_depend_on_that_of_the_problem() -> None:
    one, _ = dense_decode(rows=1, context=8192)
    config = default(one)
    op = ops.get("dense_decode")
    assert list(loads(op, one, config)) == list(loads(op, one.with_load(256, 131072), config))


# arguments


@over_all
def test_arguments_are_those_of_the_example_but_for_the_pool(problem: Problem) -> None:
    made, example = arguments(problem)
    pages = 4096 // problem.page_size
    caches = ("k_cache", "index_cache", "source_k")
    whole = [len(example[name]) for name in caches if name in example]
    assert made.keys() == example.keys()
    for name, like in example.items():
        value = made[name]
        if not isinstance(like, torch.Tensor):
            assert value == like
            continue
        assert (value.dtype, value.device.type) == (like.dtype, "cpu")
        for one, of_example in zip(value.shape, like.shape, strict=True):
            pool = next((size for size in whole if of_example % size == 0), None)
            assert one == (of_example if pool is None else of_example // pool * pages)
        if value.shape[1:] == like.shape[1:]:
            assert value.stride() == like.stride()
        else:
            assert value.is_contiguous()


@over_all
def test_a_launcher_takes_the_arguments(problem: Problem) -> None:
    """It checks shapes, strides and dtypes itself, and launches what `work` says."""
    op, config = ops.get(problem.op), default(problem)
    for load in loads(op, problem, config):
        launches = trace(render(op, problem, config), materialise(op, load, config))
        assert [one.kernel for one in launches] == [one.kernel for one in op.work(load, config)]


@pytest.mark.parametrize("query_len", [1, 4])
def test_a_cache_is_as_large_as_its_pages_and_no_page_is_there_twice(query_len: int) -> None:
    problem, _ = sparse_decode(kv_heads=2, query_len=query_len, rows=query_len)
    made, example = arguments(problem, context=5 * 128 - 3)
    assert made["k_cache"].shape == (5, 2, 128, 128)
    assert made["k_cache"].stride() == example["k_cache"].stride() == (2 * 128 * 256, 128 * 256, 256, 1)
    assert made["block_table"].tolist() == [[0, 1, 2, 3, 4]]
    assert made["seq_lens"].tolist() == [5 * 128 - 3]
    assert made["q"].shape[0] == query_len


def test_several_requests_share_no_page() -> None:
    problem, _ = dense_decode()
    load = ExactProblem.of(problem, 3, 1024)
    table = materialise(ops.get("dense_decode"), load, default(problem))["block_table"]
    assert sorted(table.flatten().tolist()) == list(range(3 * 8))


@pytest.mark.parametrize(("pages", "row"), [(3, [0, 1, 2, *[-1] * 13]), (40, list(range(24, 40)))])
def test_lists_hold_the_last_blocks_and_then_nothing(pages: int, row: list[int]) -> None:
    problem, _ = sparse_decode()
    ids = arguments(problem, pages * 128)[0]["topk_ids"]
    assert ids.shape == (1, 1, 16)
    assert ids.flatten().tolist() == row


@over_all
def test_pages_and_slots_exist(problem: Problem) -> None:
    made, _ = arguments(problem)
    pages = 4096 // problem.page_size
    bounds = {
        **dict.fromkeys(("block_table", "pairs", "index_pairs", "blocks", "index_blocks"), pages),
        **dict.fromkeys(("slots", "slot_mapping", "index_slot_mapping"), pages * problem.page_size),
        "positions": MINIMAX_M3.max_position,
        "topk_ids": pages,
        "seq_lens": 4097,
    }
    for name, bound in bounds.items():
        if isinstance(made.get(name), torch.Tensor):
            assert 0 <= int(made[name].max()) < bound, name


def test_requests_have_tokens_to_gather() -> None:
    """All starts were once zero, and a gather was timed that found nothing to do."""
    problem = next(one for one in PROBLEMS if one.op == "kv_gather")
    load = ExactProblem.of(problem, 3, 1024)
    starts = materialise(ops.get("kv_gather"), load, default(problem))["starts"]
    assert starts.tolist() == [0, 1024, 2048, 3072]


def test_every_integer_means_something() -> None:
    """What is not named here is zero: write down what an op's new input means in `materialise`, then here."""
    filled = {"block_table", "seq_lens", "starts", "topk_ids", "pairs", "index_pairs"}
    filled |= {"slot_mapping", "index_slot_mapping", "positions"}
    zero = {"blocks", "index_blocks", "ids", "arrived"}
    examples = [ops.get(one.op).example(one, default(one)) for one in PROBLEMS]
    integers = {
        name
        for example in examples
        for name, value in example.items()
        if isinstance(value, torch.Tensor) and not value.dtype.is_floating_point
    }
    assert integers - filled - zero == set()


def test_a_table_of_positions_is_no_pool() -> None:
    [problem, *_] = [one for one in PROBLEMS if one.op == "qk_norm_rope_insert"]
    made, _ = arguments(problem)
    assert len(made["cos_sin_cache"]) == MINIMAX_M3.max_position
    assert len(made["k_cache"]) == 32


def test_a_long_context_is_no_pool() -> None:
    """Rows to gather into were once taken for a cache when there were 4,096 of them."""
    problem = next(one for one in PROBLEMS if one.op == "kv_gather")
    made, _ = arguments(problem, 4096)
    assert len(made["k_out"]) == 4096
    assert len(made["k_cache"]) == 32


def test_what_is_not_an_input_of_a_kernel_is_finite_too() -> None:
    problem, _ = dense_decode(fp8=True)
    made, _ = arguments(problem)
    floats = [one for one in made.values() if isinstance(one, torch.Tensor) and one.dtype.is_floating_point]
    assert all(one.float().isfinite().all() for one in floats)
