"""The configuration for the interpreter is one of the op's own, of few programs."""

from __future__ import annotations

import pytest

from m3gen import codegen, ops
from m3gen.codegen import build_interpreted, render
from tests.problems import decode

OPS = ("kv_insert", "index_score", "index_topk", "index_select", "sparse_decode", "dense_decode")


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_it_is_of_the_space_and_splits_nothing(op: str, arch: str, dtype: str) -> None:
    problem, device = decode(op, arch, q_dtype=dtype, kv_dtype=dtype)
    _, config = build_interpreted(problem)
    assert config in ops.get(op).space(problem, device)
    for name in ("splits", "select_splits", "page_splits", "num_stages"):
        assert config.get(name, 1) == 1


def programs(op: str, config_of_build: bool) -> int:
    """Of all launches for two rows over 600 tokens."""
    problem, device = decode(op, rows=2, context=1024)
    one = ops.get(op)
    config = build_interpreted(problem)[1] if config_of_build else one.default(problem, device)
    launches = codegen.trace(render(one, problem, config), one.example(problem, config))
    return sum(launch.programs for launch in launches)


@pytest.mark.parametrize("op", ["index_score", "index_select", "sparse_decode", "dense_decode"])
def test_it_takes_fewer_programs_than_the_default(op: str) -> None:
    assert programs(op, config_of_build=True) * 4 <= programs(op, config_of_build=False)
