"""8-bit floats as the hardware has them: a value for each code, and rounding to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from m3gen.emulator.group import F32, F64, Array


@dataclass(frozen=True)
class Format:
    """`values` fp32 [256] by code; `bias` of the exponent, `mantissa` bits; `nan` the code that NaN becomes;
    `largest` finite value."""

    name: str
    mantissa: int
    bias: int
    nan: int
    largest: float
    values: Array


@cache
def of_arch(arch: str, kind: str) -> Format:
    """fp8 (e4m3) or bf8 (e5m2) in the dialect of an arch: FNUZ on gfx942, OCP on gfx950 (ISA guides, "Data
    formats")."""
    fnuz = arch == "gfx942"
    mantissa = 3 if kind == "fp8" else 2
    bias = {("fp8", True): 8, ("fp8", False): 7, ("bf8", True): 16, ("bf8", False): 15}[kind, fnuz]
    codes = np.arange(256)
    exponent, fraction = (codes & 0x7F) >> mantissa, codes & ((1 << mantissa) - 1)
    magnitude = np.where(
        exponent == 0,
        np.ldexp(fraction / (1 << mantissa), 1 - bias),
        np.ldexp(1 + fraction / (1 << mantissa), exponent - bias),
    )
    values = np.where(codes >> 7, -magnitude, magnitude).astype(F32)
    if fnuz:
        values[0x80] = np.nan
    elif kind == "fp8":
        values[[0x7F, 0xFF]] = np.nan
    else:
        values[[0x7C, 0xFC]] = [np.inf, -np.inf]
        values[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    finite = values[np.isfinite(values)]
    name = ("e4m3" if kind == "fp8" else "e5m2") + ("fnuz" if fnuz else "fn" if kind == "fp8" else "")
    return Format(name, mantissa, bias, 0x80 if fnuz else 0x7F, float(finite.max()), values)


def encode(form: Format, x: Array) -> Array:
    """fp32 to codes, uint8: to nearest even; past the largest value NaN (FP16_OVFL is 0), or infinity in e5m2."""
    magnitude = np.abs(x.astype(F64))
    exponent = np.maximum(np.frexp(magnitude)[1] - 1, 1 - form.bias)
    exponent = np.where(np.isfinite(magnitude) & (magnitude > 0), exponent, 1 - form.bias)
    step = np.ldexp(1.0, exponent - form.mantissa)
    rounded = np.rint(magnitude / step) * step
    sign = np.signbit(x).astype(np.uint8) << np.uint8(7)
    code = np.searchsorted(
        form.values[:0x80][: _count(form)], np.where(np.isfinite(rounded), rounded, 0).astype(F32)
    )
    over = (rounded > form.largest) & ~np.isnan(x)
    overflow = 0x7C if form.name == "e5m2" else form.nan
    signed = np.where(over & (form.name != "e5m2") & (form.nan == 0x80), 0x80, code.astype(np.uint8) | sign)
    result = np.where(over & (form.nan != 0x80), np.uint8(overflow) | sign, signed)
    result = np.where((rounded == 0) & (form.nan == 0x80), 0, result)  # no negative zero
    return np.where(np.isnan(x), np.uint8(form.nan) | (sign if form.nan != 0x80 else np.uint8(0)), result).astype(
        np.uint8
    )


def _count(form: Format) -> int:
    """Codes of finite values that are not negative."""
    return int(np.count_nonzero(np.isfinite(form.values[:0x80])))
