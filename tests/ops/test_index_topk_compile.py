"""The field's default compiles for every architecture, with nothing spilled."""

from __future__ import annotations

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render, trace
from m3gen.compiler.compile import compile_launch, prepare, resource_fault
from tests.ops import index
from tests.problems import ARCHS

OP = ops.get("index_topk")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("select", ["sort", "insert"])
def test_the_default_compiles_without_spills(arch: str, select: str) -> None:
    problem, device = index.problem("index_topk", arch, ("fp32",) * 2, rows=4, context=131072)
    config = index.config(OP, problem, device, select=select)
    source = render(OP, problem, config)
    launches = trace(source, OP.example(problem, config))
    assert [launch.kernel for launch in launches] == [work.kernel for work in OP.work(problem, config)]
    for launch in launches:
        facts = compile_launch(source, launch, device.architecture).facts
        assert facts.vector_spills == facts.scratch_bytes == 0
        assert not resource_fault(facts, device.architecture)


@pytest.mark.parametrize("arch", ARCHS)
def test_page_tables_and_ascending_ids_compile_too(arch: str) -> None:
    problem, device = index.problem("index_topk", arch, ("fp32",) * 2, rows=4, context=131072)
    config = index.config(OP, problem, device, select="insert", splits=4, merge="last")
    source = render(OP, problem, config)
    arguments = OP.example(problem, config) | {
        "ascending": True,
        "block_table": torch.empty((4, 1024), dtype=torch.int32, device="meta"),
        "page_table": torch.empty((1, 4, 128), dtype=torch.int32, device="meta"),
        "context_lens": torch.empty((1, 4), dtype=torch.int32, device="meta"),
    }
    (launch,) = trace(source, arguments)
    facts = compile_launch(source, launch, device.architecture).facts
    assert facts.vector_spills == facts.scratch_bytes == 0


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_the_number_of_compiles_does_not_grow_with_the_shapes_of_a_service(arch: str) -> None:
    problem, device = index.problem("index_topk", arch, ("fp32",) * 2, context=131072)
    config = OP.default(problem, device)
    source = render(OP, problem, config)
    module = load_module(source)
    keys = set()
    for rows in (1, 3, 16, 17):
        for width in (1, 16, 33):
            arguments = OP.example(problem, config) | {
                "scores": torch.empty((1, rows, width), device="meta"),
                "seq_lens": torch.empty(rows, dtype=torch.int32, device="meta"),
                "ids": torch.empty((1, rows, 16), dtype=torch.int32, device="meta"),
            }
            launches = trace(source, arguments | {"check": False})
            keys |= {prepare(module, launch, device.architecture).key for launch in launches}
    assert len(keys) == len(OP.work(problem, config))
