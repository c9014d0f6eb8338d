"""Reductions and scans over bf16 and the 8-bit floats."""

from __future__ import annotations

import pytest
import torch

from . import kernels
from .kernels import BF16, launch

ROWS, COLUMNS = 8, 64


def reduce(op: str, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    result = torch.empty(len(x), dtype=dtype)
    launch(kernels.reduce, x, result, op, *x.shape)
    return result


@pytest.mark.parametrize("dtype", [BF16, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2])
@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
def test_extremes(op: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.stack([torch.randperm(COLUMNS) - COLUMNS // 2 for _ in range(ROWS)]).to(dtype)
    expected = getattr(x.float(), "a" + op.removeprefix("a") if op.startswith("arg") else "a" + op)(1)
    assert torch.equal(reduce(op, x, torch.int32 if op.startswith("arg") else torch.float32), expected)


def test_bf16_sum_added_codes() -> None:
    x = torch.randint(-8, 8, (ROWS, COLUMNS)).to(BF16)  # every partial sum is exact in bf16
    assert torch.equal(reduce("sum", x, BF16), x.float().sum(1).to(BF16))


def test_bf16_sum_rounds_at_each_step() -> None:
    x = torch.ones(1, 1024).to(BF16)
    x[0, 0] = 257.0 - 1  # 256 + 1 is a tie that goes back to 256
    near = reduce("sum", x, BF16).item()
    assert near == pytest.approx(1279, rel=10 * 2.0**-9)


def test_bf16_sum_of_a_whole_block() -> None:
    x, result = torch.arange(64).to(BF16), torch.empty(1, dtype=BF16)
    launch(kernels.total, x, result, 64)
    assert result.item() == pytest.approx(2016, rel=6 * 2.0**-9)


def test_bf16_sum_in_float32_is_exact() -> None:
    x, result = torch.arange(64).to(BF16), torch.empty(1)
    launch(kernels.total_in_float32, x, result, 64)
    assert result.item() == 2016


def test_bf16_cumsum_added_codes() -> None:
    x, result = torch.randint(-4, 4, (64,)).to(BF16), torch.empty(64, dtype=BF16)
    launch(kernels.cumsum, x, result, 64)
    assert torch.equal(result, x.float().cumsum(0).to(BF16))


def test_combine_function_of_the_kernel_on_bf16() -> None:
    x, result = torch.randn(32).to(BF16), torch.empty(1, dtype=BF16)
    launch(kernels.reduce_by_hand, x, result, 32)
    assert result.item() == x.max().item()


@pytest.mark.parametrize("dtype", [torch.float32, BF16])
def test_extremes_leave_nan_out(dtype: torch.dtype) -> None:
    x = torch.randn(ROWS, COLUMNS).to(dtype)
    x[1, 3], x[2, 0] = float("nan"), float("nan")
    expected = x.float().nan_to_num(nan=-1e30).amax(1)
    assert torch.equal(reduce("max", x, torch.float32), expected)
    assert torch.equal(reduce("argmax", x, torch.int32), x.float().nan_to_num(nan=-1e30).argmax(1).int())


def test_a_slice_of_nan_alone_raised() -> None:
    x = torch.randn(ROWS, COLUMNS)
    x[5] = float("nan")
    assert reduce("max", x, torch.float32).isnan().nonzero().flatten().tolist() == [5]
    assert 0 <= reduce("argmax", x, torch.int32)[5] < COLUMNS


def test_a_loop_up_to_a_reduction_raised() -> None:
    x, result = torch.tensor([3, 1, 7, 0], dtype=torch.int32), torch.empty(1, dtype=torch.int32)
    launch(kernels.count_to_the_largest, x, result, 4)
    assert result.item() == 7
