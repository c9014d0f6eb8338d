"""The problems that stand for all of an op."""

from __future__ import annotations

import pytest

from m3gen import ops
from m3gen.ops.coverage import ALL, QUICK
from m3gen.spec import Problem
from m3gen.targets import default_device
from tests.problems import ARCHS


def made(name: str, arch: str = "gfx942", coverage: object = ALL) -> list[Problem]:
    return list(coverage.problems([ops.get(name)], default_device(arch)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ops.names())
def test_every_dtype_and_every_kind_of_scale_is_there(name: str, arch: str) -> None:
    fp8 = default_device(arch).architecture.fp8
    found = {(one.kv_dtype, one.kv_scale) for one in made(name, arch)}
    plain = {("bf16", "none"), ("fp16", "none"), ("fp32", "none"), (fp8, "none")}
    if name == "index_topk":
        assert found == {("fp32", "none")}
    elif name.startswith("index_"):  # index keys have no scales
        assert found == plain
    else:
        assert found == plain | {(fp8, "scalar"), (fp8, "per_token_head")}
    assert all(one.q_dtype == one.kv_dtype for one in made(name, arch) if one.kv_dtype in ("fp16", "fp32"))


@pytest.mark.parametrize("name", ["sparse_decode", "dense_decode"])
def test_attention_comes_in_every_group_query_length_and_number_of_splits(name: str) -> None:
    found = made(name)
    assert {(one.group_size, one.kv_heads) for one in found} == {(16, 1), (16, 2), (8, 1), (4, 1)}
    assert {one.query_len for one in found} == {1, 4}
    op, device = ops.get(name), default_device("gfx942")
    assert {int(op.default(one, device)["splits"]) > 1 for one in found} == {True, False}


def test_the_top_k_comes_in_every_structure_of_its_defaults() -> None:
    op, device = ops.get("index_topk"), default_device("gfx942")
    defaults = [op.default(one, device) for one in made("index_topk")]
    assert {(config["tile"], config.get("merge")) for config in defaults} >= {(64, None), (128, "last")}


def test_query_heads_do_not_double_what_knows_none() -> None:
    of_one_load = [one for one in made("kv_copy") if one.rows == 1]
    assert len(of_one_load) == 6 + 2  # every cache of one KV head, bf16 and fp8 of two


@pytest.mark.parametrize("arch", ARCHS)
def test_the_quick_ones_are_a_part_of_all(arch: str) -> None:
    for name in ops.names():
        quick = made(name, arch, QUICK)
        assert set(quick) <= set(made(name, arch))
        assert len(quick) == (1 if name == "index_topk" else 2)
