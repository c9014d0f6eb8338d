"""`tl.dot` against float64."""

from __future__ import annotations

import pytest
import torch

from . import kernels
from .kernels import BF16, FLOAT8, launch

M, N, K = 16, 32, 64


def dot(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(c)
    launch(kernels.dot, a, b, c, result, M, N, K)
    return result


@pytest.mark.parametrize("dtype", [BF16, *FLOAT8, torch.float16, torch.float32])
def test_dot_on_codes(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b, c = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype), torch.randn(M, N)
    exact = a.double() @ b.double() + c.double()
    bound = (a.double().abs() @ b.double().abs() + c.double().abs()) * K * torch.finfo(torch.float32).eps
    assert ((dot(a, b, c).double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("pair", [(torch.float8_e4m3fn, torch.float8_e5m2)])
def test_dot_of_two_float8_types(pair: tuple[torch.dtype, torch.dtype]) -> None:
    a, b, c = torch.randn(M, K).to(pair[0]), torch.randn(K, N).to(pair[1]), torch.zeros(M, N)
    assert torch.allclose(dot(a, b, c).double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)


def test_fp16_accumulator_is_rounded_once() -> None:
    a, b, c = (torch.randn(*shape).half() for shape in ((M, K), (K, N), (M, N)))
    exact = a.double() @ b.double() + c.double()
    assert ((dot(a, b, c).double() - exact).abs() <= exact.abs() * 2**-11 + 1e-4).all()


@pytest.mark.parametrize("dtype", [BF16, torch.float8_e4m3fn])
def test_nan_and_only_its_row_and_column_reach_the_result(dtype: torch.dtype) -> None:
    a, b, c = torch.ones(M, K).to(dtype), torch.ones(K, N).to(dtype), torch.zeros(M, N)
    a[3, 5] = float("nan")
    assert dot(a, b, c).isnan().any(1).nonzero().flatten().tolist() == [3]


def test_infinite_bf16_operand_reaches_the_result() -> None:
    a, b, c = torch.ones(M, K).to(BF16), torch.ones(K, N).to(BF16), torch.zeros(M, N)
    a[2, 0] = float("inf")
    assert dot(a, b, c).isinf().all(1).nonzero().flatten().tolist() == [2]
