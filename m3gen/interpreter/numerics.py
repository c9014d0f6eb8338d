"""bf16 and the 8-bit floats as numpy knows them: decode their codes to float32, encode float32 to codes.

Encoding rounds once, to nearest even or toward zero. An 8-bit float saturates: what is over its largest
finite value, infinities included, becomes that value with its sign, and NaN stays NaN. That is what the
native conversions do: Triton emits `cvt.rn.satfinite` on NVIDIA (PTX ISA, "cvt") and sets MODE.FP16_OVFL
first on gfx942 and gfx950 (AMD CDNA3 ISA, "MODE register"); what an infinity gives on AMD has not been seen
on hardware. torch agrees on e4m3fn alone: its other 8-bit floats turn into NaN or infinity. bf16 overflows to
infinity everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[Any]
Floats = NDArray[np.float32]

_BF16_NAN = np.uint16(0x7FC0)


@dataclass(frozen=True, slots=True, eq=False)
class Float8:
    """One 8-bit float: sign, exponent and mantissa from high bit to low, with the special codes named.

    `values[code]` is the value of every code. `ties[i]` is the largest float32 that rounds to the magnitude
    code `i` rather than `i + 1`, which makes rounding to nearest even one binary search.
    """

    mantissa_bits: int
    bias: int
    largest: int  # code of the largest finite value
    infinity: int | None
    nan: int
    signed_zero: bool
    values: Floats = field(init=False)
    ties: Floats = field(init=False)

    def __post_init__(self) -> None:
        code = np.arange(128)
        exponent, mantissa = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        fraction = mantissa / (1 << self.mantissa_bits)
        magnitude = np.where(
            exponent == 0, np.ldexp(fraction, 1 - self.bias), np.ldexp(1 + fraction, exponent - self.bias)
        )
        magnitude[self.largest + 1 :] = np.nan
        if self.infinity is not None:
            magnitude[self.infinity] = np.inf
        values = np.concatenate([magnitude, -magnitude]).astype(np.float32)
        if not self.signed_zero:
            values[0x80] = np.nan

        finite = values[: self.largest + 1]
        middle = (finite[:-1] + finite[1:]) / np.float32(2)
        odd = np.arange(self.largest) % 2 == 1  # a tie goes to the even code, up from an odd one
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "ties", np.where(odd, np.nextafter(middle, np.float32(0)), middle))

    def decode(self, codes: Codes) -> Floats:
        return self.values[codes]

    def encode(self, values: Floats, toward_zero: bool, keep_infinity: bool) -> Codes:
        magnitude = np.abs(values)
        if toward_zero:
            codes = np.searchsorted(self.values[1 : self.largest + 1], magnitude, side="right")
        else:
            codes = np.searchsorted(self.ties, magnitude, side="left")
        if keep_infinity and self.infinity is not None:
            codes = np.where(np.isinf(magnitude), self.infinity, codes)
        negative = np.signbit(values)
        if not self.signed_zero:
            negative = negative & (codes != 0)
        return np.where(np.isnan(values), self.nan, codes | (negative << 7)).astype(np.uint8)


# OCP 8-bit Floating Point Specification 1.0 for the first two; the "fnuz" forms have no infinity and no
# negative zero, whose code is their only NaN (AMD CDNA3 ISA; https://arxiv.org/abs/2206.02915).
FLOAT8: dict[str, Float8] = {
    "fp8e4nv": Float8(3, bias=7, largest=0x7E, infinity=None, nan=0x7F, signed_zero=True),
    "fp8e5": Float8(2, bias=15, largest=0x7B, infinity=0x7C, nan=0x7F, signed_zero=True),
    "fp8e4b8": Float8(3, bias=8, largest=0x7F, infinity=None, nan=0x80, signed_zero=False),
    "fp8e5b16": Float8(2, bias=16, largest=0x7F, infinity=None, nan=0x80, signed_zero=False),
}

ENCODED: frozenset[str] = frozenset({"bf16", *FLOAT8})  # Triton's names of the dtypes numpy lacks


def decode(codes: Codes, dtype: str) -> Floats:
    """The values, exact, of codes of a dtype in `ENCODED` (uint16 for bf16, else uint8); any shape."""
    if dtype == "bf16":
        return np.asarray(np.left_shift(codes, 16, dtype=np.uint32)).view(np.float32)
    return np.asarray(FLOAT8[dtype].decode(codes))


def encode(values: NDArray[Any], dtype: str, *, toward_zero: bool = False, keep_infinity: bool = False) -> Codes:
    """The codes of `values` in a dtype of `ENCODED`, rounded to nearest even unless `toward_zero`; any shape.

    Values of another type go through float32 first, as they do in torch. `keep_infinity` is for results of
    arithmetic within a type: in e5m2 an infinite operand may give an infinite result. bf16 always keeps it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        floats = np.asarray(values, dtype=np.float32)
        if dtype != "bf16":
            return np.asarray(FLOAT8[dtype].encode(floats, toward_zero, keep_infinity))
        bits = floats.view(np.uint32)
        carry = np.uint32(0) if toward_zero else np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        rounded = ((bits + carry) >> np.uint32(16)).astype(np.uint16)
        return np.asarray(np.where(np.isnan(floats), _BF16_NAN, rounded))


def nan_code(dtype: str) -> int:
    """The code of NaN in a dtype of `ENCODED`."""
    return int(_BF16_NAN) if dtype == "bf16" else FLOAT8[dtype].nan


def narrow_toward_zero(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """`values` in a narrower float type that numpy has, rounded toward zero; overflow gives the largest."""
    with np.errstate(over="ignore"):
        nearest = values.astype(dtype)
        past = np.abs(nearest) > np.abs(values)
        return np.asarray(np.where(past, np.nextafter(nearest, dtype.type(0)), nearest))


def to_odd(values: NDArray[np.float64]) -> Floats:
    """float64 to float32 so that a second rounding to 16 bits or fewer gives what one rounding would.

    Inexact values go toward zero and set the last bit ("round to odd": Boldo and Melquiond, "Emulation of
    FMA and correctly rounded sums", IEEE Transactions on Computers 57(4), 2008).
    """
    cut = narrow_toward_zero(values, np.dtype(np.float32))
    inexact = (cut != values) & np.isfinite(values)
    return np.asarray(cut.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)
