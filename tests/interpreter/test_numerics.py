"""The codes against torch's own casts; torch parts from the GPUs only where a test says so."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.interpreter.numerics import FLOAT8 as FORMATS
from m3gen.interpreter.numerics import decode, encode, nan_code, to_odd

from .kernels import BF16, FLOAT8, TRITON_NAME, all_codes, bits

DTYPES = (BF16, *FLOAT8)
RAW = {1: torch.uint8, 2: torch.int16}
float32 = st.floats(width=32, allow_nan=True, allow_infinity=True, allow_subnormal=True)


def as_codes(tensor: torch.Tensor) -> np.ndarray:
    return tensor.view(RAW[tensor.itemsize]).numpy().view(f"u{tensor.itemsize}")


def as_tensor(codes: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(codes.view(f"i{codes.itemsize}").copy()).view(dtype)


def cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return as_tensor(encode(values.numpy(), TRITON_NAME[dtype]), dtype)


@cache
def magnitudes(dtype: torch.dtype) -> torch.Tensor:
    values = all_codes(dtype).float()
    return values[values.isfinite()].abs().unique()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_code_decodes_to_torch_value(dtype: torch.dtype) -> None:
    codes = all_codes(dtype)
    decoded = torch.from_numpy(decode(as_codes(codes), TRITON_NAME[dtype]).copy())
    assert torch.equal(bits(decoded), bits(codes.float()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_code_survives_decoding_and_encoding(dtype: torch.dtype) -> None:
    codes = all_codes(dtype)
    finite = codes[codes.float().isfinite()]
    assert torch.equal(bits(cast(finite.float(), dtype)), bits(finite))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_tie_and_its_neighbours_round_as_in_torch(dtype: torch.dtype) -> None:
    values = all_codes(dtype).float()
    values = values[values.isfinite()].unique()
    tie = ((values[:-1].double() + values[1:].double()) / 2).float()
    around = torch.cat([tie, torch.nextafter(tie, tie + 1e38), torch.nextafter(tie, tie - 1e38)])
    assert torch.equal(bits(cast(around, dtype)), bits(around.to(dtype)))


@pytest.mark.parametrize("source", [torch.float16, BF16])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_every_16_bit_value_encodes_as_in_torch_within_range(source: torch.dtype, dtype: torch.dtype) -> None:
    values = all_codes(source).float()
    values = values[values.abs() <= torch.finfo(dtype).max]
    assert torch.equal(bits(cast(values, dtype)), bits(values.to(dtype)))


@settings(deadline=None)
@given(st.lists(float32, min_size=1, max_size=64))
def test_bf16_rounds_as_in_torch(values: list[float]) -> None:
    floats = torch.tensor(values)
    assert torch.equal(bits(cast(floats, BF16)), bits(floats.to(BF16)))


@pytest.mark.parametrize("dtype", FLOAT8)
@settings(deadline=None)
@given(values=st.lists(float32, min_size=1, max_size=64))
def test_float8_rounds_as_in_torch_after_saturation(dtype: torch.dtype, values: list[float]) -> None:
    floats, largest = torch.tensor(values), torch.finfo(dtype).max
    assert torch.equal(bits(cast(floats, dtype)), bits(floats.clamp(-largest, largest).to(dtype)))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_overflow_and_infinity_saturate_as_on_gpus_where_torch_may_not(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    over = torch.tensor([largest * 1.001, largest * 2, 3e38, float("inf")])
    assert cast(torch.cat([over, -over]), dtype).float().tolist() == [largest] * 4 + [-largest] * 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_stays_nan(dtype: torch.dtype) -> None:
    payloads = torch.tensor([0x7F800001, 0x7FC00000, 0x7FFFFFFF, -1], dtype=torch.int32).view(torch.float32)
    assert cast(payloads, dtype).float().isnan().all()
    code = np.array([nan_code(TRITON_NAME[dtype])], dtype=f"u{dtype.itemsize}")
    assert as_tensor(code, dtype).float().isnan().all()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz])
def test_unsigned_zero_formats_have_no_negative_zero(dtype: torch.dtype) -> None:
    assert as_codes(cast(torch.tensor([-0.0, -1e-30]), dtype)).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@settings(deadline=None)
@given(values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=64))
def test_toward_zero_is_the_nearest_code_not_beyond(dtype: torch.dtype, values: list[float]) -> None:
    floats = torch.tensor(values)
    cut = as_tensor(encode(floats.numpy(), TRITON_NAME[dtype], toward_zero=True), dtype).float()
    ladder = magnitudes(dtype)
    below = ladder[torch.searchsorted(ladder, floats.abs(), right=True) - 1]
    assert torch.equal(cut.abs(), below)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_are_kept(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    codes = encode(np.full(shape, 1.5, dtype=np.float32), TRITON_NAME[dtype])
    assert codes.shape == decode(codes, TRITON_NAME[dtype]).shape == shape


def test_rounding_to_odd_lets_a_second_rounding_see_what_the_first_dropped() -> None:
    tie = 1 + 2.0**-8  # halfway between two bf16 values, so what lies beyond it decides
    above = np.array([tie + 2.0**-40, -(tie + 2.0**-40), tie, 1e300, np.inf])
    rounded = decode(encode(to_odd(above), "bf16"), "bf16")
    assert rounded[:3].tolist() == [1 + 2.0**-7, -(1 + 2.0**-7), 1.0]
    assert rounded[4] == np.inf


def test_formats_are_those_of_torch() -> None:
    assert {name: float(f.values[f.largest]) for name, f in FORMATS.items()} == {
        TRITON_NAME[dtype]: torch.finfo(dtype).max for dtype in FLOAT8
    }
