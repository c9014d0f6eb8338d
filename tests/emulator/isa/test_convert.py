"""Conversions: integers saturated and NaN to 0, floats rounded once, 8-bit floats as torch has them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator import harness
from tests.emulator.isa.numbers import bits, decode, draw, encode, mask, rounded, step
from tests.emulator.isa.rows import LANES, Row, check

SHORT, LONG = ("e32", "e64"), ("",)
VOP = (*SHORT, "sdwa")
FP8 = {
    ("gfx942", "fp8"): torch.float8_e4m3fnuz,
    ("gfx942", "bf8"): torch.float8_e5m2fnuz,
    ("gfx950", "fp8"): torch.float8_e4m3fn,
    ("gfx950", "bf8"): torch.float8_e5m2,
}


def integer(kind: str, x: float) -> int:
    """Towards zero, to the ends of the range, NaN to 0."""
    width = bits(kind)
    low, high = (-(1 << (width - 1)), mask(width - 1)) if kind[0] == "i" else (0, mask(width))
    if math.isnan(x):
        return 0
    return (high if x > 0 else low) if math.isinf(x) else max(low, min(high, math.trunc(x)))


def floored(x: float) -> int:
    return integer("i32", float(math.floor(x)) if math.isfinite(x) else x)


def toward_zero(x: float) -> Any:
    """To fp16; what is too large becomes the largest."""
    if not math.isfinite(x) or x == 0:
        return x
    exact = Fraction(x)
    quantum = step("f16", exact)
    cut = math.trunc(exact / quantum) * quantum
    return math.copysign(min(65504.0, abs(float(cut))), x)


ROWS = {
    "v_cvt_f32_u32": Row("f32 : u32", lambda x: Fraction(x) if x else 0.0, VOP),
    "v_cvt_f32_i32": Row("f32 : i32", lambda x: Fraction(x) if x else 0.0, VOP),
    "v_cvt_u32_f32": Row("u32 : f32", lambda x: integer("u32", x), VOP),
    "v_cvt_i32_f32": Row("i32 : f32", lambda x: integer("i32", x), VOP),
    "v_cvt_rpi_i32_f32": Row("i32 : f32", lambda x: floored(rounded("f32", x + 0.5)), VOP),
    "v_cvt_flr_i32_f32": Row("i32 : f32", floored, VOP),
    "v_cvt_f16_f32": Row("f16 : f32", lambda x: x, VOP),
    "v_cvt_f32_f16": Row("f32 : f16", lambda x: x, VOP),
    "v_cvt_f16_u16": Row("f16 : u16", float, VOP),
    "v_cvt_f16_i16": Row("f16 : i16", float, VOP),
    "v_cvt_u16_f16": Row("u16 : f16", lambda x: integer("u16", x), VOP),
    "v_cvt_i16_f16": Row("i16 : f16", lambda x: integer("i16", x), VOP),
    "v_cvt_f64_f32": Row("f64 : f32", lambda x: x, SHORT),
    "v_cvt_f32_f64": Row("f32 : f64", lambda x: x, SHORT),
    "v_cvt_f64_u32": Row("f64 : u32", float, SHORT),
    "v_cvt_f64_i32": Row("f64 : i32", float, SHORT),
    "v_cvt_u32_f64": Row("u32 : f64", lambda x: integer("u32", x), SHORT),
    "v_cvt_i32_f64": Row("i32 : f64", lambda x: integer("i32", x), SHORT),
    "v_cvt_f32_bf16": Row("f32 : bf16", lambda x: x, VOP, arch="gfx950", modifiers=False),
    **{f"v_cvt_f32_ubyte{n}": Row("f32 : u32", lambda x, n=n: float(x >> 8 * n & 255), VOP) for n in range(4)},
    "v_cvt_pk_bf16_f32": Row("2bf16 : f32 f32", lambda x, y: (x, y), LONG, arch="gfx950"),
    "v_cvt_pk_f16_f32": Row("2f16 : f32 f32", lambda x, y: (x, y), LONG, arch="gfx950"),
    "v_cvt_pkrtz_f16_f32": Row("2f16 : f32 f32", lambda x, y: (toward_zero(x), toward_zero(y)), LONG),
    "v_pack_b32_f16": Row("u32 : x16 x16", lambda x, y: x | y << 16, LONG, op_sel=True),
    "v_cvt_pk_u16_u32": Row("2u16 : u32 u32", lambda x, y: (min(x, 65535), min(y, 65535)), LONG),
}
FORMS = [(mnemonic, form) for mnemonic, row in ROWS.items() for form in row.forms]
SCALED_FROM = {
    f"v_cvt_scalef32_pk_{into}_{kind}": (into, kind) for into in ("f32", "f16", "bf16") for kind in ("fp8", "bf8")
}
SCALED_TO = {
    f"v_cvt_scalef32_pk_{kind}_{source}": (kind, source)
    for source in ("f32", "f16", "bf16")
    for kind in ("fp8", "bf8")
}
SPECIAL = {
    *(f"v_cvt{form}_f32_{kind}" for form in ("", "_pk") for kind in ("fp8", "bf8")),
    "v_cvt_pk_fp8_f32",
    "v_cvt_pk_bf8_f32",
    *SCALED_FROM,
    *SCALED_TO,
}


@pytest.mark.parametrize(("mnemonic", "form"), FORMS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=5, deadline=None)
def test_a_line_gives_what_its_formula_says(mnemonic: str, form: str, seed: int) -> None:
    check(mnemonic, ROWS[mnemonic], form, seed)


def values(arch: str, kind: str) -> list[float]:
    """Of every code."""
    return [float(x) for x in torch.arange(256, dtype=torch.uint8).view(FP8[arch, kind]).float()]


def codes(arch: str, kind: str, numbers: list[float]) -> list[int]:
    """fp32 numbers rounded by torch: to nearest even, past the range NaN or infinity. Some versions of torch give the
    largest e4m3fn, 448, instead; the hardware does so only where FP16_OVFL is set, which it is not."""
    wide = torch.tensor(np.array(numbers, np.float32))
    found = [int(x) for x in wide.to(FP8[arch, kind]).view(torch.uint8)]
    if FP8[arch, kind] != torch.float8_e4m3fn:
        return found
    return [0x7F if abs(x) > 464 else code for x, code in zip(numbers, found, strict=True)]


def same_number(found: float, expected: float) -> bool:
    if math.isnan(expected):
        return math.isnan(found)
    return found == expected and math.copysign(1, found) == math.copysign(1, expected)


@pytest.mark.parametrize(("arch", "kind"), FP8)
@pytest.mark.parametrize("byte", range(4))
def test_every_code_of_every_byte(arch: str, kind: str, byte: int) -> None:
    table = values(arch, kind)
    for start in range(0, 256, LANES):
        words = [(start + lane) << 8 * byte | 0x55555555 & ~(255 << 8 * byte) for lane in range(LANES)]
        lines = [f"v_cvt_f32_{kind}_sdwa v0, v1 src0_sel:BYTE_{byte}"]
        if byte == 0:
            lines += [f"v_cvt_f32_{kind}_e32 v0, v1", f"v_cvt_f32_{kind}_e64 v0, v1"]
        for line in lines:
            found = harness.run(line, {1: words}, arch=arch).lanes(0)
            for lane, word in enumerate(found):
                assert same_number(decode("f32", word), table[start + lane]), (line, start + lane)


@pytest.mark.parametrize(("arch", "kind"), FP8)
@given(seed=st.integers(0, 1 << 30), high=st.booleans())
@settings(max_examples=5, deadline=None)
def test_pairs_of_codes(arch: str, kind: str, seed: int, high: bool) -> None:
    table, random = values(arch, kind), np.random.default_rng(seed)
    words = draw("u32", random, LANES)
    line = (
        f"v_cvt_pk_f32_{kind}_sdwa v[2:3], v1 src0_sel:WORD_1" if high else f"v_cvt_pk_f32_{kind}_e32 v[2:3], v1"
    )
    after = harness.run(line, {1: words}, arch=arch)
    for lane, word in enumerate(words):
        part = word >> 16 * high
        for register, code in ((2, part & 255), (3, part >> 8 & 255)):
            assert same_number(decode("f32", after.lanes(register)[lane]), table[code]), (line, hex(word))


def numbers_near(arch: str, kind: str, random: np.random.Generator) -> list[int]:
    """fp32 words: values of codes, halfway between two, their neighbours, and anything."""
    finite = sorted(x for x in set(values(arch, kind)) if math.isfinite(x))
    between = [(a + b) / 2 for a, b in itertools.pairwise(finite)]
    picks = [encode("f32", float(x)) for x in random.choice(finite + between, LANES)]
    moved = [(word + int(d)) & mask(32) for word, d in zip(picks, random.integers(-1, 2, LANES), strict=True)]
    return [
        a if keep else b
        for a, b, keep in zip(moved, draw("f32", random, LANES), random.integers(0, 3, LANES), strict=True)
    ]


def same_code(arch: str, kind: str, found: int, expected: int) -> bool:
    table = values(arch, kind)
    return found == expected or (math.isnan(table[found]) and math.isnan(table[expected]))


@pytest.mark.parametrize(("arch", "kind"), FP8)
@given(seed=st.integers(0, 1 << 30), high=st.booleans(), signs=st.booleans())
@settings(max_examples=8, deadline=None)
def test_to_8_bits(arch: str, kind: str, seed: int, high: bool, signs: bool) -> None:
    """Into the half that op_sel names; the other half is kept."""
    random = np.random.default_rng(seed)
    x, y = (numbers_near(arch, kind, random) for _ in range(2))
    before = draw("u32", random, LANES)
    sources = "-v1, |v2|" if signs else "v1, v2"
    line = f"v_cvt_pk_{kind}_f32 v0, {sources}" + " op_sel:[0,0,1]" * high
    found = harness.run(line, {0: before, 1: x, 2: y}, arch=arch).lanes(0)
    if signs:
        x, y = [word ^ 1 << 31 for word in x], [word & mask(31) for word in y]
    low, top = (codes(arch, kind, [decode("f32", word) for word in words]) for words in (x, y))
    for lane, word in enumerate(found):
        half, rest = (word >> 16, word & 0xFFFF) if high else (word & 0xFFFF, word >> 16)
        assert rest == (before[lane] & 0xFFFF if high else before[lane] >> 16)
        what = (line, hex(x[lane]), hex(y[lane]), hex(half), hex(low[lane]), hex(top[lane]))
        assert same_code(arch, kind, half & 255, low[lane]), what
        assert same_code(arch, kind, half >> 8, top[lane]), what


def scales(random: np.random.Generator) -> tuple[list[int], list[int]]:
    """fp32 words and the exponents that they name; the fraction and the sign do not count. Near 1, and any but 255."""
    near = random.integers(115, 140, LANES)
    exponents = [
        int(n if k else a)
        for n, a, k in zip(near, random.integers(0, 255, LANES), random.integers(0, 4, LANES), strict=True)
    ]
    noise = random.integers(0, 1 << 23, LANES)
    return [e << 23 | int(f) | int(f & 1) << 31 for e, f in zip(exponents, noise, strict=True)], [
        e - 127 for e in exponents
    ]


@pytest.mark.parametrize("mnemonic", SCALED_FROM)
@given(seed=st.integers(0, 1 << 30), high=st.booleans())
@settings(max_examples=4, deadline=None)
def test_scaled_from_8_bits(mnemonic: str, seed: int, high: bool) -> None:
    """Codes times the power of two of a scale's exponent, rounded once."""
    into, kind = SCALED_FROM[mnemonic]
    random, table = np.random.default_rng(seed), values("gfx950", kind)
    words, (scale, exponents) = draw("u32", random, LANES), scales(random)
    target = "v[4:5]" if into == "f32" else "v4"
    line = f"{mnemonic} {target}, v1, v2" + " op_sel:[1,0,0]" * high
    after = harness.run(line, {1: words, 2: scale}, arch="gfx950")
    for lane, word in enumerate(words):
        part = word >> 16 * high
        for number, code in enumerate((part & 255, part >> 8 & 255)):
            found = (
                after.lanes(4 + number)[lane] if into == "f32" else after.lanes(4)[lane] >> 16 * number & 0xFFFF
            )
            x = table[code]
            expected = x if not math.isfinite(x) or x == 0 else Fraction(x) * Fraction(2) ** exponents[lane]
            got = decode(into, found)
            assert math.isnan(got) if expected != expected else found == encode(into, expected), (line, x, got)


@pytest.mark.parametrize("mnemonic", SCALED_TO)
@given(seed=st.integers(0, 1 << 30), high=st.booleans())
@settings(max_examples=4, deadline=None)
def test_scaled_to_8_bits(mnemonic: str, seed: int, high: bool) -> None:
    """Numbers over the power of two of a scale's exponent, rounded once."""
    kind, source = SCALED_TO[mnemonic]
    random = np.random.default_rng(seed)
    scale, exponents = scales(random)
    before = draw("u32", random, LANES)
    if source == "f32":
        x, y = draw("f32", random, LANES), draw("f32", random, LANES)
        vectors, sources = {1: x, 2: y}, "v1, v2"
        pairs = [(decode("f32", a), decode("f32", b)) for a, b in zip(x, y, strict=True)]
    else:
        words = draw(f"2{source}", random, LANES)
        vectors, sources = {1: words}, "v1"
        pairs = [decode(f"2{source}", word) for word in words]
    zeros = "0,0,0" if source == "f32" else "0,0"
    line = f"{mnemonic} v0, {sources}, v3" + f" op_sel:[{zeros},1]" * high
    found = harness.run(line, {0: before, 3: scale, **vectors}, arch="gfx950").lanes(0)
    for number in (0, 1):
        exact = [np.ldexp(pair[number], -e) for pair, e in zip(pairs, exponents, strict=True)]
        with np.errstate(over="ignore"):
            expected = codes("gfx950", kind, [float(np.float32(x)) for x in exact])
        for lane, word in enumerate(found):
            half, rest = (word >> 16, word & 0xFFFF) if high else (word & 0xFFFF, word >> 16)
            assert rest == (before[lane] & 0xFFFF if high else before[lane] >> 16)
            code = half >> 8 * number & 255
            assert same_code("gfx950", kind, code, expected[lane]), (line, pairs[lane], exponents[lane], code)
