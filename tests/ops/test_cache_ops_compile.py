"""Every default compiles for every architecture, without scratch and without a spill."""

from __future__ import annotations

import pytest

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.compiler.compile import compile_launch, resource_fault
from tests import problems
from tests.ops import cache_problems
from tests.ops.cache_problems import OPS


@pytest.mark.parametrize("arch", problems.ARCHS)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("scale", ["none", "per_token_head"])
def test_the_default_compiles_without_a_spill(name: str, arch: str, scale: str) -> None:
    of, device = cache_problems.problem(name, arch, scale=scale, rows=16)
    default = cache_problems.config(of, device)
    source = render(ops.get(name), of, default)
    (launch,) = trace(source, ops.get(name).example(of, default))
    facts = compile_launch(source, launch, device.architecture).facts
    assert facts.vector_spills == facts.scalar_spills == facts.scratch_bytes == 0
    assert not resource_fault(facts, device.architecture)
    assert facts.workgroups_per_cu >= 4  # memory-bound kernels hide latency with waves
