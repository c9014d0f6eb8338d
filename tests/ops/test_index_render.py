"""What the index ops' templates write, whatever the config."""

from __future__ import annotations

import ast
import random

import pytest

from m3gen import ops
from m3gen.codegen import render
from tests.ops import index

CASES = [
    ("index_score", ("bf16", "bf16")),
    ("index_score", ("bf16", "fp8")),
    ("index_topk", ("fp32", "fp32")),
    ("index_select", ("bf16", "bf16")),
    ("index_select", ("bf16", "fp8")),
]


@pytest.mark.parametrize(("name", "dtypes"), CASES)
@pytest.mark.parametrize("arch", ["gfx950", "sm_90"])
def test_every_candidate_renders_to_a_module_with_its_launcher(
    name: str, dtypes: tuple[str, str], arch: str
) -> None:
    op = ops.get(name)
    problem, device = index.problem(name, arch, dtypes, group_size=2, query_len=3, rows=4)
    space, draw = op.space(problem, device), random.Random(1)
    for _ in range(40):
        config = space.config(draw.randrange(len(space)))
        source = render(op, problem, config)
        functions = [node.name for node in ast.parse(source.text).body if isinstance(node, ast.FunctionDef)]
        assert functions[-1] == source.entry == name
        assert {work.kernel for work in op.work(problem, config)} <= set(functions)
        assert not any(mark in source.text for mark in ("{{", "{%", "{#"))
        assert "\n\n\n\n" not in source.text
        assert not any(line != line.rstrip() for line in source.text.splitlines())


@pytest.mark.parametrize(("name", "dtypes"), CASES)
def test_the_text_does_not_know_the_load(name: str, dtypes: tuple[str, str]) -> None:
    op = ops.get(name)
    (small, device), (large, _) = (
        index.problem(name, "gfx942", dtypes, rows=rows, context=context)
        for rows, context in ((1, 1024), (512, 1 << 20))
    )
    config = op.default(small, device)
    assert render(op, small, config).sha == render(op, large, config).sha
