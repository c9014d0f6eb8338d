"""The defaults of both decode attentions compile for every architecture without scratch, spill or excess."""

from __future__ import annotations

import pytest

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.compiler.compile import compile_launch, resource_fault
from tests import problems


# Every dtype and both ops on every vendor; an architecture alone where the compiler treats it differently.
@pytest.mark.parametrize(
    ("op", "arch", "fields"),
    [
        *(("dense_decode", arch, {}) for arch in ("gfx942", "sm_90")),
        *(("dense_decode", arch, {"fp8": True}) for arch in problems.ARCHS),
        ("dense_decode", "gfx950", {"q_dtype": "fp16", "kv_dtype": "fp16", "query_len": 4, "rows": 4}),
        ("dense_decode", "sm_100", {"q_dtype": "fp32", "kv_dtype": "fp32"}),
        *(("sparse_decode", arch, {}) for arch in ("gfx950", "sm_100")),
        *(("sparse_decode", arch, {"fp8": True}) for arch in ("gfx942", "sm_90", "sm_100")),
        ("sparse_decode", "gfx942", {"q_dtype": "fp32", "kv_dtype": "fp32"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())) or "bf16",
)
def test_the_default_neither_spills_nor_exceeds(op: str, arch: str, fields: dict) -> None:
    problem, device = problems.decode(op, arch, **fields)
    config = ops.get(op).default(problem, device)
    assert config in ops.get(op).space(problem, device)
    source = render(ops.get(op), problem, config)
    for launch in trace(source, ops.get(op).example(problem, config)):
        facts = compile_launch(source, launch, device.architecture).facts
        assert (facts.kernel, facts.vector_spills, facts.scratch_bytes) == (launch.kernel, 0, 0)
        assert not resource_fault(facts, device.architecture)


def test_a_schedule_orders_the_same_work_differently() -> None:
    op, (problem, device) = ops.get("dense_decode"), problems.decode("dense_decode", "gfx942")
    shas, matrix = set(), set()
    for schedule in ("default", "iterative-ilp", "max-ilp"):
        config = op.space(problem, device).canonical({**op.default(problem, device), "schedule": schedule})
        source = render(op, problem, config)
        facts = compile_launch(source, trace(source, op.example(problem, config))[0], device.architecture).facts
        shas.add(facts.code_sha)
        matrix.add(facts.mix["matrix"])
    assert (len(shas), len(matrix)) == (3, 1)
