"""Elementwise arithmetic, comparisons, masks and memory operations on bf16 and the 8-bit floats."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from triton.runtime.errors import InterpreterError

from m3gen.interpreter import interpreting, overflow_unchecked

from . import kernels
from .kernels import BF16, FLOAT8, all_codes, bits, launch

COMPARE = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def without_nan(choose: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """torch.fmin and fmax let a signalling NaN through, which half of bf16's NaN codes are."""
    return lambda x, y: torch.where(x.isnan(), y, torch.where(y.isnan(), x, choose(x, y)))


BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "min": without_nan(torch.minimum), "max": without_nan(torch.maximum),
}  # fmt: skip


def shuffled(dtype: torch.dtype, seed: int) -> torch.Tensor:
    codes = all_codes(dtype)
    return codes[torch.randperm(len(codes), generator=torch.Generator().manual_seed(seed))]


def binary(op: str, x: torch.Tensor, y: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    result = torch.empty(x.shape, dtype=dtype)
    launch(kernels.binary, x, y, result, op, x.numel())
    return result


@pytest.mark.parametrize("op", BINARY)
def test_bf16_arithmetic_ran_on_codes(op: str) -> None:
    x, y = shuffled(BF16, 0), shuffled(BF16, 1)
    expected = BINARY[op](x.float(), y.float()).to(BF16)
    assert torch.equal(bits(binary(op, x, y, BF16)), bits(expected))


def test_bf16_division_is_done_in_float32() -> None:
    x, y = torch.randn(1024).to(BF16), torch.randn(1024).to(BF16)
    assert torch.equal(binary("div", x, y, torch.float32), x.float() / y.float())


def test_bf16_with_float32_is_done_in_float32() -> None:
    x, y = torch.randn(1024).to(BF16), torch.randn(1024)
    assert torch.equal(binary("mul", x, y, torch.float32), x.float() * y)


@pytest.mark.parametrize("op", ["add", "mul", "max"])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_arithmetic_rounds_to_its_own_type(op: str, dtype: torch.dtype) -> None:
    x, y = shuffled(dtype, 0), shuffled(dtype, 1)
    largest = torch.finfo(dtype).max
    expected = BINARY[op](x.float(), y.float())
    saturated = torch.where(expected.isinf(), expected, expected.clamp(-largest, largest))
    assert torch.equal(bits(binary(op, x, y, dtype)), bits(saturated.to(dtype)))


@pytest.mark.parametrize("op", COMPARE)
@pytest.mark.parametrize("dtype", [BF16, *FLOAT8, torch.float32, torch.int32])
def test_comparisons_are_masks(op: str, dtype: torch.dtype) -> None:
    if dtype in (BF16, *FLOAT8):
        x, y = shuffled(dtype, 0), shuffled(dtype, 1)
        x[: len(x) // 4] = y[: len(x) // 4]
    else:
        x, y = (torch.randint(-4, 4, (256,)).to(dtype) for _ in range(2))
    result = torch.full(x.shape, 7, dtype=torch.int32)
    launch(kernels.compare, x, y, result, op, x.numel())
    assert torch.equal(result.bool(), COMPARE[op](x.float(), y.float()))


def test_bf16_negative_zero_equals_zero() -> None:
    x, y, result = torch.tensor([0.0, -0.0]).to(BF16), torch.tensor([-0.0, 0.0]).to(BF16), torch.zeros(2)
    launch(kernels.compare, x, y, result, "eq", 2)
    assert result.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [BF16, *FLOAT8])
@pytest.mark.parametrize("op", ["neg", "abs", "exp2"])
def test_unary(op: str, dtype: torch.dtype) -> None:
    x = all_codes(dtype)
    x = torch.where(x.float().abs() < 100, x.float(), 1.0).to(dtype) if op == "exp2" else x
    result = torch.empty(x.shape, dtype=dtype)
    launch(kernels.unary, x, result, op, x.numel())
    largest = torch.finfo(dtype).max if dtype in FLOAT8 else float("inf")
    exact = {"neg": torch.neg, "abs": torch.abs, "exp2": torch.exp2}[op](x.double()).float()
    codes = bits(torch.where(x.float().isinf(), exact, exact.clamp(-largest, largest)).to(dtype))
    if op == "neg":  # 3.6 negates by subtracting from zero, whose sign of zero is the plus
        keep = x.float() != 0
        assert torch.equal(bits(result)[keep], codes[keep])
    else:
        assert torch.equal(bits(result), codes)


def test_bf16_fma_rounds_once() -> None:
    x, y, z = (torch.randn(4096).to(BF16) for _ in range(3))
    # A product on a tie of bf16 and an addend far below it: rounding the product first loses the addend.
    x[0], y[0], z[0] = 1 + 2.0**-4, 1 + 2.0**-4 + 2.0**-5, 2.0**-60
    result = torch.empty(4096, dtype=BF16)
    launch(kernels.fma, x, y, z, result, 4096)
    exact = x.double() * y.double() + z.double()
    error = (result.double() - exact).abs()
    assert (error <= torch.finfo(BF16).eps / 2 * exact.abs() * (1 + 1e-12)).all()


@pytest.mark.parametrize("dtype", [BF16, torch.float32])
def test_clamp_drops_nan(dtype: torch.dtype) -> None:
    x = torch.tensor([-5.0, 0.5, 5.0, float("nan")], dtype=dtype)
    result = torch.empty(4, dtype=dtype)
    launch(kernels.clamp, x, result, -1.0, 2.0, 4)
    assert result.tolist() == [-1.0, 0.5, 2.0, -1.0]


def test_scalar_condition_in_a_mask_was_no_mask() -> None:
    x, result = torch.arange(8), torch.full((8,), -1)
    launch(kernels.scalar_condition_in_mask, x, result, 3, 8)
    assert result.tolist() == [0, 1, 2, 3, -1, -1, -1, -1]


def test_bf16_atomic_add_ran_on_codes() -> None:
    x = torch.tensor([1.0, 2.0, 4.0, 0.5, 8.0, 16.0, 32.0, 999.0], dtype=BF16)
    at = torch.tensor([0, 1, 0, 1, 2, 2, 0, 0], dtype=torch.int32)
    result = torch.ones(4, dtype=BF16)
    launch(kernels.atomic_add_at, x, at, result, 8)
    assert result.tolist() == [38.0, 3.5, 25.0, 1.0]  # the last lane is masked off


@pytest.mark.parametrize("dtype", [BF16, torch.float16, torch.float8_e4m3fnuz])
def test_nan_padding_of_descriptors_was_zero(dtype: torch.dtype) -> None:
    x, result = torch.ones(32).to(dtype), torch.empty(32, dtype=dtype)
    launch(kernels.load_past_the_end, x, result, 20, 32)
    assert result.float().isnan().tolist() == [False] * 20 + [True] * 12


def test_sort_of_bf16() -> None:
    x, result = torch.randn(64).to(BF16), torch.empty(64, dtype=BF16)
    launch(kernels.sort, x, result, 64)
    assert torch.equal(result, x.sort().values)


def test_an_integer_that_overflows_ends_the_launch_unless_unchecked() -> None:
    x = torch.tensor([1, 1 << 30], dtype=torch.int32)
    y = torch.zeros_like(x)
    launch(kernels.product, x, y, 1, BLOCK=2)
    assert torch.equal(y, x)
    with pytest.raises(InterpreterError, match="int32 overflow detected for operation mul"):
        launch(kernels.product, x, y, 2, BLOCK=2)
    with interpreting(), overflow_unchecked():
        kernels.product[(1,)](x, y, 2, BLOCK=2)
    assert y.tolist() == [2, -(1 << 31)]
