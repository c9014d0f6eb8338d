"""Casts, stores and constants inside a kernel, in every direction, against torch's own."""

from __future__ import annotations

import pytest
import torch

from . import kernels
from .kernels import BF16, FLOAT8, all_codes, bits, launch

NARROW = (BF16, *FLOAT8)


def cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    result = torch.empty(values.shape, dtype=dtype)
    launch(kernels.cast, values, result, values.numel())
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BF16, torch.float64])
@pytest.mark.parametrize("source", NARROW)
def test_every_code_widens_exactly(source: torch.dtype, dtype: torch.dtype) -> None:
    if source is BF16 and dtype is torch.float16:
        pytest.skip("not a widening; see the test of bf16 to fp16")
    codes = all_codes(source)
    assert torch.equal(bits(cast(codes, dtype)), bits(codes.to(dtype)))


def test_bf16_to_fp16_and_back_round_as_in_torch() -> None:
    codes = all_codes(BF16)
    assert torch.equal(bits(cast(codes, torch.float16)), bits(codes.to(torch.float16)))
    codes = all_codes(torch.float16)
    assert torch.equal(bits(cast(codes, BF16)), bits(codes.to(BF16)))


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("source", [BF16, torch.float16, torch.float32])
def test_to_float8_rounds_to_nearest_even_and_saturates(source: torch.dtype, dtype: torch.dtype) -> None:
    values = all_codes(BF16).to(source)
    largest = torch.finfo(dtype).max
    assert torch.equal(bits(cast(values, dtype)), bits(values.float().clamp(-largest, largest).to(dtype)))


def test_float32_to_bf16_truncated() -> None:
    values = torch.cat([torch.tensor([1.06]), torch.randn(1023)])
    assert torch.equal(bits(cast(values, BF16)), bits(values.to(BF16)))


def test_float32_to_float8_kept_neither_nan_nor_large_values() -> None:
    values = torch.tensor([1000.0, -1000.0, float("nan"), 1.2e-3])
    assert cast(values, torch.float8_e4m3fn).float().tolist()[:2] == [448.0, -448.0]
    assert cast(values, torch.float8_e4m3fnuz).float().tolist()[:2] == [240.0, -240.0]
    assert cast(values, torch.float8_e4m3fn).float()[2].isnan()
    assert cast(values, torch.float8_e4m3fn)[3].float().item() == 2.0**-9  # the smallest, not zero


def test_float32_to_e5m2_lost_the_carry_out_of_the_mantissa() -> None:
    assert cast(torch.tensor([7.7, 7.7]), torch.float8_e5m2).float().tolist() == [8.0, 8.0]


@pytest.mark.parametrize("source", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8])
def test_integers_became_bf16_codes(source: torch.dtype) -> None:
    values = torch.arange(-128, 128).to(source)
    values[:4] = torch.tensor([torch.iinfo(source).max, torch.iinfo(source).min, 77, 1], dtype=source)
    assert torch.equal(bits(cast(values, BF16)), bits(values.to(BF16)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int16])
def test_bf16_to_integers_drops_the_fraction(dtype: torch.dtype) -> None:
    values = (torch.randn(256) * 100).to(BF16)
    assert torch.equal(cast(values, dtype), values.to(dtype))


def test_bf16_negative_zero_is_false() -> None:
    values = torch.tensor([0.0, -0.0, 1.0, float("nan")], dtype=BF16)
    assert cast(values, torch.bool).tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", [BF16, torch.float16, *FLOAT8])
def test_toward_zero_never_rounds_away(dtype: torch.dtype) -> None:
    values = torch.cat([torch.randn(253) * 50, torch.tensor([1e9, -1e9, 65519.0])])
    result = torch.empty(256, dtype=dtype)
    launch(kernels.cast_toward_zero, values, result, 256)
    largest = torch.finfo(dtype).max
    nearest = values.clamp(-largest, largest).to(dtype).float()
    cut = result.float()
    assert (cut.abs() <= values.abs()).all()
    exact_or_nearest_below = nearest.abs() <= values.abs()
    assert torch.equal(cut[exact_or_nearest_below], nearest[exact_or_nearest_below])
    assert (cut[~exact_or_nearest_below].abs() < nearest[~exact_or_nearest_below].abs()).all()


def test_storing_float32_through_a_bf16_pointer_rounds() -> None:
    values, result = torch.randn(1024), torch.empty(1024, dtype=BF16)
    launch(kernels.store_without_cast, values, result, 1024)
    assert torch.equal(bits(result), bits(values.to(BF16)))


@pytest.mark.parametrize(("source", "dtype"), [(BF16, torch.int16), (torch.int16, BF16)])
def test_bitcasts_keep_the_bits(source: torch.dtype, dtype: torch.dtype) -> None:
    codes = all_codes(BF16).view(source)
    result = torch.empty(2**16, dtype=dtype)
    launch(kernels.bitcast, codes, result, 2**16)
    assert torch.equal(result.view(torch.int16), codes.view(torch.int16))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_bitcasts_keep_the_bits(dtype: torch.dtype) -> None:
    result = torch.empty(256, dtype=torch.uint8)
    launch(kernels.bitcast, all_codes(dtype), result, 256)
    assert torch.equal(result, torch.arange(256, dtype=torch.uint8))


@pytest.mark.parametrize("value", [0.0, 1.06, -3.0])
def test_bf16_constants(value: float) -> None:
    result = torch.empty(8, dtype=BF16)
    launch(kernels.fill, result, value, 8)
    assert torch.equal(result, torch.full((8,), value, dtype=BF16))
