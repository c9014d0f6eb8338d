from __future__ import annotations

import pytest

from m3gen import ops
from m3gen.codegen import KernelSource, Pointer, render, trace
from tests import problems

OP = ops.get("sparse_decode")


def launches_of(**fields: object):
    problem, device = problems.sparse_decode(**fields)
    config = OP.default(problem, device)
    return problem, config, trace(render(OP, problem, config), OP.example(problem, config))


def test_the_recorded_launches_are_those_of_the_launcher() -> None:
    problem, config, (attend, merge) = launches_of(rows=16)
    assert (attend.kernel, merge.kernel) == ("sparse_decode_attend", "merge_splits")
    assert attend.grid == (16 * problem.kv_heads, config["splits"], 1)
    assert merge.grid == (16, problem.q_heads, 1)
    arguments = dict(attend.arguments)
    assert arguments["GROUP"] == problem.group_size
    assert arguments["TILE_N"] == config["tile_n"]
    assert dict(attend.options)["num_warps"] == attend.num_warps == config["num_warps"]


@pytest.mark.parametrize("op", ["sparse_decode", "dense_decode"])
@pytest.mark.parametrize(
    ("schedule", "version", "expected"),
    [
        ("max-ilp", "3.9.0", "amdgpu-sched-strategy=max-ilp"),
        ("iterative-ilp", "3.10.1+rocm7.2", "amdgpu-sched-strategy=iterative-ilp"),
        ("max-ilp", "3.7.1", None),  # has no such option, and would refuse the launch
        ("default", "3.9.0", None),
    ],
)
def test_the_schedule_is_asked_for_where_triton_takes_it(
    op: str, schedule: str, version: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton.__version__", version)
    problem, device = problems.decode(op, "gfx942")
    one = ops.get(op)
    config = one.space(problem, device).canonical({**one.default(problem, device), "schedule": schedule})
    attend, *rest = trace(render(one, problem, config), one.example(problem, config))
    assert dict(attend.options).get("llvm_fn_attrs") == expected
    assert not any("llvm_fn_attrs" in dict(launch.options) for launch in rest)


def test_the_cache_is_larger_than_a_32_bit_offset_and_v_is_as_aligned_as_it_lies() -> None:
    _, _, (attend, _) = launches_of()
    arguments = dict(attend.arguments)
    k, v = arguments["k_ptr"], arguments["v_ptr"]
    assert isinstance(k, Pointer)
    assert isinstance(v, Pointer)
    assert k.storage_bytes == v.storage_bytes > 1 << 31
    assert (k.alignment, v.alignment) == (256, 256)  # V begins head_dim * 2 bytes = 256 after K
    assert k.dtype == "bf16"


def test_fp8_arguments_carry_their_dialect() -> None:
    for arch, dialect in (("gfx942", "e4m3fnuz"), ("gfx950", "e4m3fn"), ("sm_90", "e4m3fn")):
        _, _, (attend, *_) = launches_of(arch=arch, fp8=True)
        assert dict(attend.arguments)["k_ptr"].dtype == dialect


def test_what_the_launcher_raises_passes_through() -> None:
    source = KernelSource("x", "x", "def x():\n    raise RuntimeError('no such layout')\n", {})
    with pytest.raises(RuntimeError, match="no such layout"):
        trace(source, {})


def test_an_argument_that_is_no_kernel_argument_is_refused() -> None:
    text = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n\ndef x():\n    kernel[(1,)](object())\n"
    with pytest.raises(TypeError, match="object"):
        trace(KernelSource("x", "x", text, {}), {})
