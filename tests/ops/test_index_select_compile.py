"""The field's default and the single launches compile for every architecture, with nothing spilled."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render, trace
from m3gen.compiler.compile import compile_launch, prepare, resource_fault
from tests.ops import index
from tests.problems import ARCHS

OP = ops.get("index_select")
SCORES = {"form": "scores", "select": "insert", "splits": 64}
LISTS = {"form": "lists", "select": "insert", "splits": 64}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("values", "dtypes", "shape"),
    [
        ({}, ("bf16", "bf16"), {}),
        (SCORES, ("bf16", "bf16"), {}),
        (LISTS, ("fp8", "fp8"), {"group_size": 4, "query_len": 4}),
    ],
    ids=["default", "scores", "lists"],
)
def test_it_compiles_without_spills(
    arch: str, values: dict[str, Any], dtypes: tuple[str, str], shape: dict[str, int]
) -> None:
    problem, device = index.problem("index_select", arch, dtypes, rows=16, **shape)
    config = index.config(OP, problem, device, **values)
    source = render(OP, problem, config)
    launches = trace(source, OP.example(problem, config))
    assert [launch.kernel for launch in launches] == [work.kernel for work in OP.work(problem, config)]
    for launch in launches:
        facts = compile_launch(source, launch, device.architecture).facts
        assert facts.vector_spills == facts.scratch_bytes == 0
        assert not resource_fault(facts, device.architecture)


def test_a_page_table_in_ascending_order_compiles_in_one_launch() -> None:
    problem, device = index.problem("index_select", "gfx950", rows=4)
    config = index.config(OP, problem, device, **LISTS)
    source = render(OP, problem, config)
    arguments = OP.example(problem, config) | {
        "ascending": True,
        "page_table": torch.empty((1, 4, 128), dtype=torch.int32, device="meta"),
        "context_lens": torch.empty((1, 4), dtype=torch.int32, device="meta"),
    }
    (launch,) = trace(source, arguments)
    facts = compile_launch(source, launch, device.architecture).facts
    assert facts.vector_spills == facts.scratch_bytes == 0


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
@pytest.mark.parametrize("values", [{}, SCORES, LISTS], ids=["apart", "scores", "lists"])
def test_the_number_of_compiles_does_not_grow_with_the_shapes_of_a_service(
    arch: str, values: dict[str, Any]
) -> None:
    """Integers that are 1, multiples of 16 or neither are three signatures to Triton unless told otherwise."""
    problem, device = index.problem("index_select", arch)
    config = index.config(OP, problem, device, **values)
    source = render(OP, problem, config)
    module = load_module(source)
    keys = set()
    for rows in (1, 3, 16, 17):
        for blocks in (1, 16, 33):
            arguments = OP.example(problem, config) | {
                "q": torch.empty((rows + 1, 1, 128), dtype=torch.bfloat16, device="meta")[1:],
                "block_table": torch.empty((rows, blocks), dtype=torch.int32, device="meta"),
                "seq_lens": torch.empty(rows, dtype=torch.int32, device="meta"),
                "scores": torch.empty((1, rows, blocks + 1), device="meta"),
                "ids": torch.empty((1, rows, 16), dtype=torch.int32, device="meta"),
                "init_blocks": blocks % 2,
                "local_blocks": blocks % 3,
                "pages_per_block": 8 * (rows % 2 + 1),
            }
            launches = trace(source, arguments | {"check": False})
            keys |= {prepare(module, launch, device.architecture).key for launch in launches}
    assert len(keys) == len(OP.work(problem, config))
