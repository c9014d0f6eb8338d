from __future__ import annotations

import pytest
import torch

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.evaluate.gate import verify
from m3gen.ops import decode_inputs
from m3gen.spec import CONTEXT_BUCKETS, ROW_BUCKETS
from tests import problems
from tests.ops import decode

OP = ops.get("dense_decode")


@pytest.mark.parametrize("arch", problems.ARCHS)
def test_the_fields_default_is_in_the_space_of_every_problem(arch: str) -> None:
    for fields in ({}, {"fp8": True}, {"q_dtype": "fp32", "kv_dtype": "fp32"}):
        for rows in ROW_BUCKETS[:: len(ROW_BUCKETS) - 1]:
            for context in CONTEXT_BUCKETS[:: len(CONTEXT_BUCKETS) - 1]:
                for query_len in (1, 3, 4):
                    values = {**fields, "rows": max(rows, 4), "context": context, "query_len": query_len}
                    problem, device = problems.dense_decode(arch, **values)
                    assert OP.space(problem, device).violations(OP.default(problem, device)) == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"tile_n": 16, "splits": 16, "partials": "fp32"}),
        ({"fp8": True}, {"tile_n": 32, "splits": 16}),
        ({"rows": 128}, {"splits": 16}),
        ({"rows": 256}, {"splits": 1}),
        ({"rows": 64, "kv_heads": 4}, {"splits": 1}),
        ({"rows": 512, "query_len": 4}, {"splits": 16, "rows_packed": 1}),
        ({"rows": 8, "query_len": 4, "group_size": 4}, {"rows_packed": 4}),
        ({"rows": 8, "query_len": 3, "group_size": 8}, {"rows_packed": 1}),
    ],
)
def test_the_default_is_that_of_the_unified_kernel(fields: dict, expected: dict) -> None:
    config = OP.default(*problems.dense_decode(**fields))
    assert {name: config[name] for name in expected} == expected


def test_every_context_is_a_problem_of_its_own() -> None:
    found = {OP.canonical(problems.dense_decode(context=context)[0]) for context in CONTEXT_BUCKETS}
    assert len(found) == len(CONTEXT_BUCKETS)


def test_work_counts_a_page_once_a_request_and_its_second_reading_as_cached() -> None:
    problem, device = problems.dense_decode(rows=64, query_len=4, context=8192)
    space = OP.space(problem, device)
    apart, together = (
        OP.work(problem, space.canonical({**OP.default(problem, device), "rows_packed": pack}))[0]
        for pack in (1, 4)
    )
    stream = 16 * 8192 * 2 * 128 * 2
    assert apart.streamed_bytes == together.streamed_bytes == stream
    assert 3 * stream <= apart.read_bytes - together.read_bytes < 3.01 * stream
    assert apart.flops == together.flops == 64 * 16 * 8192 * 128 * 4
    assert apart.loop_trips == 8192 / 16 / 16
    assert apart.lookups == 16 / 128


@pytest.mark.parametrize("query_len", [1, 2, 3, 4, 6, 8])
def test_rows_are_packed_by_any_divisor_of_the_query_length(query_len: int) -> None:
    problem, device = problems.dense_decode(rows=8, query_len=query_len)
    values = {parameter.name: parameter.values for parameter in OP.space(problem, device).parameters}
    assert set(values.get("rows_packed", (1,))) == {n for n in range(1, 9) if query_len % n == 0}


def test_splits_shrink_with_the_context() -> None:
    most = [
        max(next(p.values for p in OP.space(*problems.dense_decode(context=c)).parameters if p.name == "splits"))
        for c in (1024, 8192, 16384, 1048576)
    ]
    assert most == [16, 128, 256, 256]


def test_the_grid_is_row_tiles_times_heads_by_splits() -> None:
    problem, device = problems.dense_decode(rows=16, query_len=4, kv_heads=2)
    config = OP.space(problem, device).canonical({**OP.default(problem, device), "rows_packed": 2})
    attend, merge = trace(render(OP, problem, config), OP.example(problem, config))
    assert (attend.kernel, attend.grid) == ("dense_decode_attend", (8 * 2, 16, 1))
    assert (merge.kernel, merge.grid) == ("merge_splits", (16, 32, 1))


@pytest.mark.parametrize("fields", [{}, {"fp8": True}, {"query_len": 4, "rows": 4}])
def test_the_reference_is_finite_and_zero_exactly_where_there_is_nothing(fields: dict) -> None:
    problem, device = problems.dense_decode(**fields)
    for case in OP.cases(problem, OP.default(problem, device), 0):
        reference = OP.reference(case)["out"]
        assert reference.isfinite().all()
        zero = {row for row in range(reference.shape[0]) if (reference[row] == 0).all()}
        assert zero == set(case.zero_rows)


def test_the_reference_is_torchs_attention_over_the_gathered_sequence() -> None:
    problem = decode.tiny("dense_decode", query_len=4, kv_heads=2)
    arguments = decode.inputs(problem, decode.config(), [3 * decode.PAGE + 5])
    length, table = 3 * decode.PAGE + 5, arguments["block_table"][0].long()
    k, v = (
        arguments[f"{side}_cache"][table].transpose(0, 1).reshape(1, 2, -1, decode.HEAD_DIM)[:, :, :length]
        for side in "kv"
    )
    visible = torch.arange(length)[None, :] < torch.arange(length - 3, length + 1)[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(
        arguments["q"].transpose(0, 1)[None].double(),
        k.double().repeat_interleave(4, dim=1),
        v.double().repeat_interleave(4, dim=1),
        attn_mask=visible,
    )
    found = decode_inputs.reference(problem, arguments)
    assert torch.allclose(found, expected[0].transpose(0, 1), atol=1e-12)


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"fp8": True, "kv_scale": "per_token_head"}, {"splits": 2, "merge": "last", "masked_loads": False}),
        ({"query_len": 4, "rows": 4, "group_size": 6}, {"rows_packed": 4, "heads_in": "n", "splits": 4}),
    ],
)
def test_a_variant_passes_the_gate(fields: dict, changes: dict) -> None:
    problem, device = problems.dense_decode(**fields)
    space = OP.space(problem, device)
    names = {parameter.name: parameter.default for parameter in space.parameters}
    config = space.canonical({**names, **OP.default(problem, device), **changes, "tile_n": 64})
    verdict = verify(OP, problem, config, render(OP, problem, config), seeds=(0,))
    assert verdict.ok, verdict.reason
