"""The field's default compiles for every architecture, with nothing spilled."""

from __future__ import annotations

import pytest

from m3gen import ops
from m3gen.codegen import load_module, render, trace
from m3gen.compiler.compile import compile_launch, prepare, resource_fault
from tests.ops import index
from tests.problems import ARCHS

OP = ops.get("index_score")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("dtypes", "heads", "query_len"), [(("bf16",) * 2, 1, 1), (("fp8",) * 2, 4, 4)])
def test_the_default_compiles_without_spills(
    arch: str, dtypes: tuple[str, str], heads: int, query_len: int
) -> None:
    problem, device = index.problem("index_score", arch, dtypes, rows=16, group_size=heads, query_len=query_len)
    config = OP.default(problem, device)
    source = render(OP, problem, config)
    (launch,) = trace(source, OP.example(problem, config))
    facts = compile_launch(source, launch, device.architecture).facts
    assert facts.vector_spills == facts.scratch_bytes == 0
    assert not resource_fault(facts, device.architecture)
    assert bool(facts.matrix_instructions) == (config["scorer"] == "matrix")
    assert any(
        set(loop.load_widths) == {"4", "16"} for loop in facts.loops
    )  # page ids, then whole vectors of keys


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_the_number_of_compiles_does_not_grow_with_the_shapes_of_a_service(arch: str) -> None:
    """Integers that are 1, multiples of 16 or neither are three signatures to Triton unless told otherwise."""
    import torch

    problem, device = index.problem("index_score", arch)
    source = render(OP, problem, OP.default(problem, device))
    module = load_module(source)
    keys = set()
    for rows in (1, 3, 16, 17):
        for blocks in (1, 16, 33):
            arguments = OP.example(problem, OP.default(problem, device)) | {
                "q": torch.empty((rows + 1, 1, 128), dtype=torch.bfloat16, device="meta")[1:],
                "block_table": torch.empty((rows, blocks), dtype=torch.int32, device="meta"),
                "seq_lens": torch.empty(rows, dtype=torch.int32, device="meta"),
                "scores": torch.empty((1, rows, blocks + 1), device="meta"),
                "init_blocks": blocks % 2,
                "local_blocks": blocks % 3,
            }
            (launch,) = trace(source, arguments)
            keys.add(prepare(module, launch, device.architecture).key)
    assert len(keys) == 1
