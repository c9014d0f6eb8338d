from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.evaluate.comparison import compare
from m3gen.interpreter import interpreting
from m3gen.ops import cache_inputs, norm_rope_inputs
from m3gen.spec import DType, Problem, dtype
from m3gen.targets import Device
from tests.ops import cache_problems

OP = ops.get("qk_norm_rope_insert")


def problem(arch: str = "gfx942", **fields: Any) -> tuple[Problem, Device]:
    return cache_problems.problem("qk_norm_rope_insert", arch, **fields)


def dtype_of(tensor: torch.Tensor) -> DType:
    return dtype(cache_inputs.name_of(tensor.dtype))


def element(x: list[float], w: list[float], cos: list[float], sin: list[float], eps: float, i: int) -> float:
    """Element i of a normed and rotated head, as complex multiplication of pairs."""
    rms = math.sqrt(math.fsum(value * value for value in x) / len(x) + eps)
    normed = [value / rms * (1 + weight) for value, weight in zip(x, w, strict=True)]
    if i >= 64:
        return normed[i]
    pair = complex(normed[i % 32], normed[i % 32 + 32]) * complex(cos[i % 32], sin[i % 32])
    return pair.real if i < 32 else pair.imag


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([1e-6, 1.0]), st.sampled_from([1e-3, 1.0, 100.0]))
def test_the_reference_is_a_complex_rotation_of_the_normed_head(seed: int, eps: float, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((2, 3, 128), generator=generator) * scale
    arguments = {
        "q_weight": torch.randn(128, generator=generator),
        "cos_sin_cache": torch.randn((5, 64), generator=generator),
        "positions": torch.tensor([4, 2]),
        "eps": eps,
    }
    found = norm_rope_inputs.norm_rope(x, "q", arguments)
    for row, head, i in ((0, 0, 0), (0, 1, 31), (0, 2, 32), (1, 0, 63), (1, 1, 64), (1, 2, 127)):
        angles = arguments["cos_sin_cache"][arguments["positions"][row]].double().tolist()
        weight = arguments["q_weight"].double().tolist()
        expected = element(x[row, head].double().tolist(), weight, angles[:32], angles[32:], eps, i)
        assert math.isclose(float(found[row, head, i]), expected, rel_tol=1e-12, abs_tol=1e-12 * scale)


def test_a_position_outside_the_table_spoils_what_it_would_rotate_and_no_more() -> None:
    of, device = problem()
    case = cache_problems.case(of, device, "slots and values")
    reference = OP.reference(case)["q_out"]
    outside = [row for row in range(7) if reference[row, 1, :64].isnan().all()]
    assert outside == [2, 6]
    assert reference[outside][:, 1:, 64:].isfinite().all()


def test_the_cases_hold_what_hurts() -> None:
    of, device = problem(scale="per_token_head", kv_heads=2)
    arguments = cache_problems.case(of, device, "slots and values").arguments
    slots = arguments["slot_mapping"]
    assert (slots < 0).any()
    assert (slots >= 3 * 128).any()
    assert not torch.equal(slots, arguments["index_slot_mapping"])
    assert not arguments["qkv"].is_contiguous()
    assert arguments["qkv"].isnan().any()
    assert arguments["qkv"].abs().nan_to_num().max() > 1e4
    dense = cache_problems.case(of, device, "dense layer").arguments
    assert "index_cache" not in dense
    assert not dense["k_cache"].is_contiguous()


def test_quantising_skips_the_rounding_to_the_models_dtype() -> None:
    """A value between two 8-bit numbers may round to their middle first and to the wrong one then."""
    of, device = problem(scale="scalar")
    case = cache_problems.case(of, device, "peers 7 tokens")
    reference = OP.reference(case)["k_cache"]
    cache_problems.launch(of, device, dict(case.arguments))
    stored = case.arguments["k_cache"]
    twice = cache_inputs.quantised(reference.to(torch.bfloat16), 1.0, of.kv_dtype)
    once = cache_inputs.quantised(reference, 1.0, of.kv_dtype)
    assert torch.equal(stored.view(torch.uint8), once.view(torch.uint8))
    assert not torch.equal(twice.view(torch.uint8), once.view(torch.uint8))


@pytest.mark.parametrize(
    ("q_heads", "kv_heads", "scale"), [(8, 2, "none"), (16, 4, "none"), (64, 4, "none"), (16, 4, "scalar")]
)
def test_the_peers_grid(q_heads: int, kv_heads: int, scale: str) -> None:
    """vLLM test_fused_minimax_m3_qknorm_rope_kv_insert.py: tokens 1, 7, 64, 513; rtol = atol = 1e-2, V exact."""
    of, device = problem(scale=scale, kv_heads=kv_heads, group_size=q_heads // kv_heads)

    class Wide(type(OP)):  # type: ignore[misc]
        """Tiles past the space, so that the interpreter sees few programs."""

        def flags(self, *args: Any) -> dict[str, Any]:
            return {**super().flags(*args), "ROWS": 64, "HEADS": 16}

    run = load_module(render(Wide(), of, OP.default(of, device))).qk_norm_rope_insert
    for tokens in (1, 7, 64, 513):
        case = norm_rope_inputs.peers_case(of, tokens, seed=tokens)
        reference = OP.reference(case)
        with interpreting():
            run(**case.arguments)
        outputs = {name: case.arguments[name] for name in case.outputs}
        assert not compare(outputs, reference, (), OP.tolerance(of, "peers"), case.exact).reason
        for name in ("q_out", "k_cache", "index_q_out", "index_cache"):
            if not dtype_of(outputs[name]).is_fp8:
                assert torch.allclose(outputs[name].double(), reference[name], rtol=1e-2, atol=1e-2)


def test_a_head_whose_squares_pass_fp32_comes_out_zero() -> None:
    """In the kernel and in the reference: zero, not the unit vector it would be in wider arithmetic."""
    of, device = cache_problems.problem("qk_norm_rope_insert")
    case = cache_problems.case(of, device, "peers 7 tokens")
    case.arguments["qkv"][3, :128] = 1e19
    cache_problems.launch(of, device, dict(case.arguments))
    assert not case.arguments["q_out"][3, 0].any()
    assert not OP.reference(case)["q_out"][3, 0].any()
    assert case.arguments["q_out"][3, 1].any()
