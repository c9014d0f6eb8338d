"""From options to problems."""

from __future__ import annotations

from typing import Any

import pytest

from m3gen import ops
from m3gen.cli import problems
from m3gen.errors import UserError
from m3gen.targets import DEVICES, default_device, device

MI300X = default_device("gfx942")


def build(**options: Any) -> list[tuple[int, str, str, int]]:
    found = problems.build(MI300X, **{"op": ["sparse_decode"], **options})
    return [(p.q_heads, p.kv_dtype, p.kv_scale, p.rows) for p in found]


def test_the_default_is_tp4_with_both_caches_at_four_loads() -> None:
    loads = (1, 16, 64, 256)
    of_one_op = [(16, "bf16", "none", rows) for rows in loads] + [
        (16, "e4m3fnuz", "scalar", rows) for rows in loads
    ]
    assert build(op=None) == of_one_op


def test_problems_are_folded_by_their_op_and_each_comes_once() -> None:
    [only] = problems.build(MI300X, op=["sparse_decode"], kv=["bf16"], rows=["3,4", "4"], context=["100000"])
    assert (only.rows, only.context) == (4, 2048)


def test_every_load_is_rows_by_context() -> None:
    found = problems.build(MI300X, op=["index_score"], kv=["bf16"], rows=["1,16"], context=["8192", "100000"])
    assert [(one.rows, one.context) for one in found] == [(1, 8192), (1, 131072), (16, 8192), (16, 131072)]


def test_fp8_is_the_dialect_of_the_architecture() -> None:
    for one in DEVICES.values():
        [problem] = problems.build(one, op=["sparse_decode"], kv=["fp8"], rows=["1"])
        assert problem.kv_dtype == one.architecture.fp8
        assert problem.compute_units == one.compute_units


def test_scale_modes_belong_to_fp8_caches() -> None:
    assert {scale for _, dtype, scale, _ in build(kv_scale="per_token_head") if dtype == "bf16"} == {"none"}
    assert {scale for *_, scale, _ in build(kv=["fp8"], kv_scale="per_token_head")} == {"per_token_head"}
    assert {scale for *_, scale, _ in build(kv=["fp8"], kv_scale="none")} == {"none"}


def test_ranks_beyond_the_kv_heads_share_them() -> None:
    assert [heads for heads, *_ in build(tp=["1,16"], kv=["bf16"], rows=["1"])] == [64, 4]


def test_longer_queries_drop_the_default_loads_that_are_too_small() -> None:
    assert [rows for *_, rows in build(kv=["bf16"], query_len=2)] == [16, 64, 256]


def test_a_device_goes_by_any_of_its_names() -> None:
    assert problems.find_device("gfx942:sramecc+:xnack-", "mi300x_oam") is device("MI300X")
    assert problems.find_device("sm90", None) is default_device("sm_90")


@pytest.mark.parametrize(
    ("options", "names", "remedy"),
    [
        ({"op": ["sparse_decod"]}, "'sparse_decod'", "did you mean sparse_decode"),
        ({"op": [","]}, "--op", "known ops"),
        ({"tp": ["3"]}, "--tp 3", "1, 2, 4, 8, 16"),
        ({"tp": ["four"]}, "--tp 'four'", "expected positive integers"),
        ({"tp": [""]}, "--tp ''", "expected positive integers"),
        ({"rows": ["0"]}, "--rows '0'", "expected positive integers"),
        ({"rows": ["1,-2"]}, "--rows '1,-2'", "expected positive integers"),
        ({"rows": ["1024"]}, "--rows 1024", "last bucket 512"),
        ({"context": ["2097152"]}, "--context 2097152", "last bucket 1048576"),
        ({"kv": ["int4"]}, "--kv 'int4'", "bf16 and fp8"),
        ({"kv": ["e4m3fn"]}, "--kv 'e4m3fn'", "its dialect is e4m3fnuz"),
        ({"kv": [","]}, "--kv ''", "bf16 and fp8"),
        ({"kv_scale": "row"}, "--kv-scale 'row'", "per_token_head"),
        ({"kv": ["bf16"], "kv_scale": "scalar"}, "--kv-scale scalar", "add fp8"),
        ({"kv": ["bf16"], "kv_scale": "none"}, "--kv-scale none", "add fp8"),
        ({"rows": ["1"], "query_len": 2}, "--rows 1", "2 rows or more"),
    ],
)
def test_what_is_refused_is_named_with_a_way_out(options: dict[str, Any], names: str, remedy: str) -> None:
    with pytest.raises(UserError) as refused:
        build(**options)
    assert names in str(refused.value)
    assert remedy in str(refused.value)


def test_a_device_of_another_architecture_is_refused() -> None:
    with pytest.raises(UserError, match="--device H200 is a sm_90 device, not gfx942: name --arch sm_90, or"):
        problems.find_device("gfx942", "H200")


def test_one_op_is_the_default_and_all_means_all() -> None:
    assert [op.name for op in problems.find_ops(None)] == ["sparse_decode"]
    assert [op.name for op in problems.find_ops(["all"])] == list(ops.names())
