"""Registers as Python's own numbers and back: integers without bounds, floats as doubles or fractions that are rounded
once. Nothing here is shared with the emulator.

Kinds of values: u16 i16 u32 i32 u64 i64 integers; f16 bf16 f32 f64 floats; x16 x32 x64 the bits of a float, for what
tells a signalling NaN from a quiet one; k32 a float that
stands in the line; "2f16" and the like two in a word; "lanes" a truth value.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np

Number = int | float | Fraction
PAIRS = {"2f16": "f16", "2bf16": "bf16", "2u16": "u16", "2i16": "i16"}
_LETTERS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
_BIAS = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}

_INTEGERS = [
    0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 23, 24, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF,
    0x10000, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
]  # fmt: skip
# Signs, zeros, the ends of denormals and of normals, infinities, quiet and signalling NaN, ties and near them.
_EDGES = {
    "f16": [0, 1, 2, 0x3FF, 0x400, 0x401, 0x37FF, 0x3800, 0x3801, 0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x4000, 0x4100,
            0x63FF, 0x6400, 0x6401, 0x77FF, 0x7800, 0x7BFF, 0x7C00, 0x7C01, 0x7E00],
    "f32": [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x1000000, 0x33800000, 0x38800000, 0x387FFFFF, 0x3EFFFFFF,
            0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40000000, 0x40200000, 0x42FE0000,
            0x43000000, 0x477FE000, 0x477FF000, 0x4AFFFFFF, 0x4B000001, 0x4B800001, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF,
            0x4F800000, 0x7E800000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000],
    "f64": [0, 1, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x36A0000000000000, 0x380FFFFFFFFFFFFF, 0x3FDFFFFFFFFFFFFF,
            0x3FE0000000000000, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x3FF0000000000001, 0x3FF8000000000000,
            0x4004000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x41EFFFFFFFE00000, 0x41F0000000000000,
            0x4330000000000001, 0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000, 0x7FE0000000000000, 0x7FEFFFFFFFFFFFFF,
            0x7FF0000000000000, 0x7FF0000000000001, 0x7FF8000000000000],
}  # fmt: skip


def bits(kind: str) -> int:
    return 32 if kind in PAIRS else int(kind.lstrip("uifxkb"))


def mask(width: int) -> int:
    return (1 << width) - 1


def signed(x: int, width: int = 32) -> int:
    """The low bits of x in two's complement."""
    x &= mask(width)
    return x - (1 << width) if x >> (width - 1) else x


def is_float(kind: str) -> bool:
    return kind[0] in "fxkb" and kind not in PAIRS


def decode(kind: str, word: int) -> Any:
    if kind in PAIRS:
        return decode(PAIRS[kind], word & 0xFFFF), decode(PAIRS[kind], word >> 16)
    if kind == "bf16":
        return decode("f32", word << 16)
    if kind == "k32":
        return decode("f32", word)
    if kind in _LETTERS:
        return float(struct.unpack(_LETTERS[kind], word.to_bytes(bits(kind) // 8, "little"))[0])
    return signed(word, bits(kind)) if kind[0] == "i" else word


def encode(kind: str, value: Any) -> int:
    """Integers are cut to their width, floats rounded once, to nearest even."""
    if kind in PAIRS:
        low, high = (encode(PAIRS[kind], one) for one in value)
        return low | high << 16
    if kind in _MANTISSA:
        return _packed(kind, rounded(kind, value))
    return int(value) & mask(bits(kind))


def _packed(kind: str, value: float) -> int:
    if kind == "bf16":
        return _packed("f32", value) >> 16
    return int.from_bytes(struct.pack(_LETTERS[kind], value), "little")


def rounded(kind: str, value: Number) -> float:
    """The nearest number of a float's kind; of two the even one, past the largest infinity."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    quantum = step(kind, exact)
    nearest = round(exact / quantum) * quantum
    if abs(nearest) >= Fraction(2) ** (_BIAS[kind] + 1):
        return math.inf if exact > 0 else -math.inf
    return float(nearest) if nearest else 0.0 if exact > 0 else -0.0


def step(kind: str, exact: Fraction) -> Fraction:
    """One unit in the last place at a number other than 0."""
    return Fraction(2) ** (max(exponent(exact), 1 - _BIAS[kind]) - _MANTISSA[kind])


def exponent(exact: Fraction) -> int:
    """Of the highest bit of a number other than 0."""
    top, bottom = abs(exact.numerator), exact.denominator
    guess = top.bit_length() - bottom.bit_length()
    return guess if Fraction(2) ** guess <= abs(exact) else guess - 1


def matches(kind: str, found: int, expected: Any, ulps: float = 0) -> bool:
    """Whether the bits of a register are the value: any NaN for NaN, else within `ulps` (0: equal in every bit)."""
    if kind in PAIRS:
        parts = (found & 0xFFFF, found >> 16)
        return all(matches(PAIRS[kind], part, one, ulps) for part, one in zip(parts, expected, strict=True))
    if kind not in _MANTISSA:
        return found == encode(kind, expected)
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(decode(kind, found))
    wanted = encode(kind, expected)
    value = decode(kind, found)
    if found == wanted or not ulps:
        return found == wanted
    if not math.isfinite(value) or (isinstance(expected, float) and not math.isfinite(expected)) or not expected:
        return False
    exact = Fraction(expected)
    return abs(Fraction(value) - exact) <= Fraction(ulps) * step(kind, exact)


def draw(kind: str, random: np.random.Generator, count: int) -> list[int]:
    """Words of a kind: edges, numbers of a moderate size, and any bits."""
    width = bits(kind)
    if kind in PAIRS:
        low, high = (draw(PAIRS[kind], random, count) for _ in range(2))
        return [a | b << 16 for a, b in zip(low, high, strict=True)]
    anything = [int(word) & mask(width) for word in random.integers(0, 1 << 64, count, np.uint64)]
    if is_float(kind):
        kind = "f32" if kind == "bf16" else f"f{width}"
        edges = [word | sign << (width - 1) for word in _EDGES[kind] for sign in (0, 1)]
        moderate = [
            encode(kind, float(x)) for x in random.standard_normal(count) * 2.0 ** random.integers(-6, 10, count)
        ]
    else:
        half = width // 2
        edges = [x for x in _INTEGERS if x <= mask(width)] + [(1 << width) - 1, 1 << (width - 1), mask(width - 1)]
        edges += [x << half & mask(width) for x in _INTEGERS] if width == 64 else []
        moderate = [edges[i] for i in random.integers(0, len(edges), count)]
    picks = random.integers(0, 4, count)
    choice = random.integers(0, len(edges), count)
    words = [(edges[c], edges[c], m, a)[p] for p, c, m, a in zip(picks, choice, moderate, anything, strict=True)]
    return [word >> 16 for word in words] if width == 16 and kind == "f32" else words


def fused(x: float, y: float, z: float) -> Number:
    """x * y + z without rounding."""
    if not all(map(math.isfinite, (x, y, z))):
        return z if math.isfinite(x) and math.isfinite(y) else x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact:
        return exact
    return x * y + z if z == 0 else 0.0


def total(x: float, y: float) -> Number:
    return fused(1.0, x, y)


def product(x: float, y: float) -> Number:
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return x * y
    return Fraction(x) * Fraction(y)
