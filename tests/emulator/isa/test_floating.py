"""Floating point of the vector unit: exact arithmetic rounded once, transcendentals within the units in the last place
that the ISA guides state."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.emulator.faults import UnknownInstruction
from tests.emulator import harness
from tests.emulator.isa.numbers import bits, decode, draw, encode, fused, mask, matches, product, rounded, total
from tests.emulator.isa.rows import LANES, Row, check

SHORT, LONG = ("e32", "e64"), ("",)
VOP = (*SHORT, "sdwa")
NAN, INF = math.nan, math.inf
SMALLEST_NORMAL = 2.0**-126


def signalling(kind: str, word: int) -> bool:
    mantissa = {"f16": 10, "f32": 23, "f64": 52}[kind]
    return math.isnan(decode(kind, word)) and not word >> (mantissa - 1) & 1


def extreme(kind: str, pick: Callable[..., Any], a: int, b: int) -> float:
    """v_max or v_min in IEEE mode: a signalling NaN makes a NaN, of a quiet one and a number it is the number; -0 is
    below +0."""
    if signalling(kind, a) or signalling(kind, b):
        return NAN
    x, y = decode(kind, a), decode(kind, b)
    if math.isnan(x) or math.isnan(y):
        return y if math.isnan(x) else x
    return pick(x, y, key=lambda v: (v, math.copysign(1, v)))


def extreme3(kind: str, pick: Callable[..., Any], a: int, b: int, c: int) -> float:
    return extreme(kind, pick, encode(kind, extreme(kind, pick, a, b)), c)


def middle(kind: str, a: int, b: int, c: int) -> float:
    """The least where there is a NaN; else the largest is left out and the larger of the others is it."""
    words = [a, b, c]
    if any(math.isnan(decode(kind, word)) for word in words):
        return extreme3(kind, min, a, b, c)
    top = max(decode(kind, word) for word in words)
    words.remove(next(word for word in words if decode(kind, word) == top))
    return extreme(kind, max, *words)


def maximum(pick: Callable[..., Any], *xs: float) -> float:
    """IEEE 754-2019: a NaN wins."""
    return NAN if any(map(math.isnan, xs)) else pick(xs, key=lambda v: (v, math.copysign(1, v)))


def whole(function: Callable[[float], int], x: float) -> float:
    """Of finite numbers; a zero has the sign of x."""
    if not math.isfinite(x):
        return x
    return math.copysign(float(function(x)), x) if not function(x) else float(function(x))


def fract(kind: str, x: float) -> float:
    """x - floor(x), below 1."""
    if not math.isfinite(x):
        return NAN
    ulp = {"f16": 11, "f32": 24, "f64": 53}[kind]
    return min(rounded(kind, Fraction(x) - math.floor(x)), 1 - 2.0**-ulp)


def powered(x: float, n: int) -> Any:
    if not math.isfinite(x) or x == 0:
        return x
    return Fraction(x) * Fraction(2) ** max(-5000, min(5000, n))


def root(x: float) -> float:
    return NAN if x < 0 else math.sqrt(x)


def reciprocal(x: float) -> float:
    if x == 0:
        return math.copysign(INF, x)
    return 1 / x


def logarithm(x: float) -> float:
    return -INF if x == 0 else NAN if x < 0 or math.isnan(x) else math.log2(x)


def exponential(x: float) -> float:
    return INF if x >= 1024 else 2.0**x


def turned(function: Callable[[float], float], beyond: float, x: float) -> float:
    """Sine or cosine of a number of turns, a constant outside -256 ... 256."""
    if not math.isfinite(x):
        return NAN
    if abs(x) > 256:
        return beyond
    return function(2 * math.pi * float(Fraction(x) - round(Fraction(x))))


def flushed(function: Callable[[float], float]) -> Callable[[float], float]:
    """fp32 transcendentals take and give zero for denormals."""

    def flush(x: float) -> float:
        return math.copysign(0.0, x) if abs(x) < SMALLEST_NORMAL else x

    return lambda x: flush(function(flush(x)))


def fraction_of(x: float) -> float:
    return math.frexp(x)[0] if math.isfinite(x) else x


def exponent_of(x: float) -> int:
    return math.frexp(x)[1] if math.isfinite(x) else 0


def biased(x: float) -> int:
    return encode("f32", x) >> 23 & 255


def denormal(x: Any) -> bool:
    return rounded("f32", x) != 0 and biased(rounded("f32", x)) == 0


def scaled_fma(x: float, y: float, z: float, scale: bool) -> Any:
    """v_div_fmas: the guide names 2^32; two powers of 2^64 are what makes the sequence of divisions right."""
    result = rounded("f32", fused(x, y, z))
    return powered(result, 64 if biased(z) > 127 else -64) if scale else result


def fixed_up(quotient: float, bottom: float, top: float) -> float:
    """The guide's cases; and infinity for a NaN, which the refinement makes of a quotient that is too large."""
    sign = math.copysign(1, bottom) * math.copysign(1, top)
    if math.isnan(top) or math.isnan(bottom) or (top == 0 == bottom) or (math.isinf(top) and math.isinf(bottom)):
        return NAN
    if bottom == 0 or math.isinf(top):
        return math.copysign(INF, sign)
    if math.isinf(bottom) or top == 0 or biased(top) - biased(bottom) < -150:
        return math.copysign(0.0, sign)
    return math.copysign(INF if math.isnan(quotient) else quotient, sign)


def three(kind: str, formula: Callable[..., Any], **rest: Any) -> Row:
    x = kind.replace("f", "x")
    return Row(f"{kind} : {x} {x} {x}", partial(formula, kind), LONG, **rest)


ROWS = {
    "v_mul_legacy_f32": Row("f32 : f32 f32", lambda x, y: product(x, y) if x and y else 0.0, LONG),
    "v_fmac_f32": Row("f32 : f32 f32 =f32", fused, SHORT),
    "v_fma_f32": Row("f32 : f32 f32 f32", fused, LONG),
    "v_fma_f16": Row("f16 : f16 f16 f16", fused, LONG, op_sel=True, keeps_half=True),
    "v_fma_f64": Row("f64 : f64 f64 f64", fused, LONG),
    "v_fmac_f64": Row("f64 : f64 f64 =f64", fused, SHORT),
    "v_fmamk_f32": Row("f32 : f32 k32 f32", fused, ("e32",)),
    "v_fmaak_f32": Row("f32 : f32 f32 k32", fused, ("e32",)),
    "v_max3_f32": three("f32", lambda kind, *words: extreme3(kind, max, *words)),
    "v_min3_f32": three("f32", lambda kind, *words: extreme3(kind, min, *words)),
    "v_med3_f32": three("f32", middle),
    "v_max3_f16": three("f16", lambda kind, *words: extreme3(kind, max, *words), op_sel=True, keeps_half=None),
    "v_min3_f16": three("f16", lambda kind, *words: extreme3(kind, min, *words), op_sel=True, keeps_half=None),
    "v_maximum3_f32": Row("f32 : f32 f32 f32", partial(maximum, max), LONG, arch="gfx950"),
    "v_minimum3_f32": Row("f32 : f32 f32 f32", partial(maximum, min), LONG, arch="gfx950"),
    "v_ldexp_f32": Row("f32 : f32 i32", powered, LONG),
    "v_ldexp_f16": Row("f16 : f16 i16", powered, VOP),
    "v_ldexp_f64": Row("f64 : f64 i32", powered, LONG),
    "v_frexp_exp_i32_f32": Row("i32 : f32", exponent_of, VOP),
    "v_frexp_exp_i32_f64": Row("i32 : f64", exponent_of, SHORT),
    "v_frexp_mant_f32": Row("f32 : f32", fraction_of, VOP),
    "v_rcp_iflag_f32": Row("f32 : f32", flushed(reciprocal), VOP, ulps=1),
    "v_rcp_f64": Row("f64 : f64", reciprocal, SHORT, ulps=2**29),
    "v_rsq_f64": Row("f64 : f64", lambda x: reciprocal(root(x) if x else x), SHORT, ulps=2**29),
    "v_sqrt_f64": Row("f64 : f64", root, SHORT, ulps=2**29),
    "v_div_fmas_f32": Row("f32 : f32 f32 f32 @vcc", scaled_fma, LONG),
    "v_div_fixup_f32": Row("f32 : f32 f32 f32", fixed_up, LONG),
}
for _kind in ("f32", "f16", "f64"):
    _forms = SHORT if _kind == "f64" else VOP
    _two, _one, _words = (text.replace("f", _kind) for text in ("f : f f", "f : f", "f : w w"))
    _words = _words.replace("w", _kind.replace("f", "x"))
    for _name, _formula in {"add": total, "mul": product}.items():
        ROWS[f"v_{_name}_{_kind}"] = Row(_two, _formula, LONG if _kind == "f64" else _forms)
    for _name, _pick in {"max": max, "min": min}.items():
        ROWS[f"v_{_name}_{_kind}"] = Row(
            _words, partial(extreme, _kind, _pick), LONG if _kind == "f64" else _forms
        )
    if _kind != "f64":
        ROWS[f"v_sub_{_kind}"] = Row(_two, lambda x, y: total(x, -y), _forms)
        ROWS[f"v_subrev_{_kind}"] = Row(_two, lambda x, y: total(y, -x), _forms)
    for _name, _function in {"trunc": math.trunc, "ceil": math.ceil, "floor": math.floor, "rndne": round}.items():
        ROWS[f"v_{_name}_{_kind}"] = Row(_one, partial(whole, _function), _forms)
    ROWS[f"v_fract_{_kind}"] = Row(_one, partial(fract, _kind), _forms)
for _name, _formula in {
    "exp": exponential,
    "log": logarithm,
    "rcp": reciprocal,
    "rsq": lambda x: reciprocal(root(x) if x else x),
    "sqrt": root,
}.items():
    ROWS[f"v_{_name}_f32"] = Row("f32 : f32", flushed(_formula), VOP, ulps=1)
    ROWS[f"v_{_name}_f16"] = Row("f16 : f16", _formula, VOP, ulps=1)
for _name, _function, _beyond in (("sin", math.sin, 0.0), ("cos", math.cos, 1.0)):
    for _kind in ("f32", "f16"):
        _tolerance = 2.0**-22 if _kind == "f32" else 2.0**-10
        ROWS[f"v_{_name}_{_kind}"] = Row(
            f"{_kind} : {_kind}", partial(turned, _function, _beyond), VOP, ulps=1, absolute=_tolerance
        )
MIXED = ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
SPECIAL = {"v_div_scale_f32", *MIXED}
FORMS = [(mnemonic, form) for mnemonic, row in ROWS.items() for form in row.forms]


@pytest.mark.parametrize(("mnemonic", "form"), FORMS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=5, deadline=None)
def test_a_line_gives_what_its_formula_says(mnemonic: str, form: str, seed: int) -> None:
    check(mnemonic, ROWS[mnemonic], form, seed)


@pytest.mark.parametrize("name", ["trunc", "ceil", "floor", "rndne", "fract", "exp", "log", "rcp", "rsq", "sqrt"])
def test_every_fp16_number(name: str) -> None:
    row = ROWS[f"v_{name}_f16"]
    for start in range(0, 1 << 16, 16 * LANES):
        words = [start + 16 * lane + start // 1024 % 16 for lane in range(LANES)]
        found = harness.run(f"v_{name}_f16_e32 v0, v1", {1: words}).lanes(0)
        for word, one in zip(words, found, strict=True):
            expected = row.formula(decode("f16", word))
            wanted = encode("f16", expected)
            distance = abs((one ^ 0x8000 if one >> 15 else one) - (wanted ^ 0x8000 if wanted >> 15 else wanted))
            assert distance <= row.ulps or (math.isnan(expected) and math.isnan(decode("f16", one))), hex(word)


@pytest.mark.parametrize("of", ["numerator", "denominator"])
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=10, deadline=None)
def test_div_scale(of: str, seed: int) -> None:
    """The cases of the guide in their order. Denominators whose reciprocal is denormal become smaller in both."""
    random = np.random.default_rng(seed)
    bottoms, tops = draw("f32", random, LANES), draw("f32", random, LANES)
    source = "v1" if of == "denominator" else "v2"
    after = harness.run(f"v_div_scale_f32 v0, vcc, {source}, v1, v2", {1: bottoms, 2: tops})
    flags = after.word(106) | after.word(107) << 32
    for lane, found in enumerate(after.lanes(0)):
        bottom, top = decode("f32", bottoms[lane]), decode("f32", tops[lane])
        if math.isnan(bottom) or math.isnan(top):
            continue
        power, flag = scaling(of, bottom, top)
        source_value = bottom if of == "denominator" else top
        expected = NAN if power is None else powered(source_value, power)
        got = decode("f32", found)
        same = math.isnan(got) if expected != expected else found == encode("f32", expected)
        assert same, (bottom, top, got, expected)
        assert flags >> lane & 1 == flag, (bottom, top, flag)


def scaling(of: str, bottom: float, top: float) -> tuple[int | None, bool]:
    """The power of two, None for NaN, and the flag in VCC."""
    if top == 0 or bottom == 0:
        return None, False
    is_bottom = of == "denominator" or top == bottom
    is_top = of == "numerator" or top == bottom
    tiny_reciprocal = math.isfinite(bottom) and denormal(1 / Fraction(bottom))
    tiny_quotient = math.isfinite(bottom) and math.isfinite(top) and denormal(Fraction(top) / Fraction(bottom))
    if biased(top) - biased(bottom) >= 96:
        return 64 * is_bottom, True
    if denormal(bottom):
        return 64, False
    if tiny_reciprocal and tiny_quotient:
        return -64 * is_bottom, True
    if tiny_reciprocal:
        return -64, False
    if tiny_quotient:
        return 64 * is_top, True
    return (64 if biased(top) <= 23 else 0), False


DIVISION = """
    v_div_scale_f32 v3, s[6:7], v2, v2, v1
    v_div_scale_f32 v4, vcc, v1, v2, v1
    v_rcp_f32 v5, v3
    v_fma_f32 v6, -v3, v5, 1.0
    v_fmac_f32 v5, v6, v5
    v_mul_f32 v6, v4, v5
    v_fma_f32 v7, -v3, v6, v4
    v_fmac_f32 v6, v7, v5
    v_fma_f32 v3, -v3, v6, v4
    v_div_fmas_f32 v3, v3, v5, v6
    v_div_fixup_f32 v0, v3, v2, v1
"""


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=25, deadline=None)
def test_quotients_of_any_two_numbers_are_rounded_right(seed: int) -> None:
    """The sequence that compilers write for a division, over the whole range, but for denormal quotients, which it
    rounds twice."""
    random = np.random.default_rng(seed)
    registers = harness.Registers()
    tops, bottoms = draw("f32", random, LANES), draw("f32", random, LANES)
    registers.vector(1, tops)
    registers.vector(2, bottoms)
    with np.errstate(all="ignore"):
        for step in harness.machine(DIVISION)._steps:
            step(registers.group)
        expected = (
            np.array(tops, np.uint32).view(np.float32) / np.array(bottoms, np.uint32).view(np.float32)
        ).tolist()
    for lane, found in enumerate(registers.lanes(0)):
        quotient = decode("f32", found)
        what = (hex(tops[lane]), hex(bottoms[lane]), quotient, expected[lane])
        if math.isnan(expected[lane]):
            assert math.isnan(quotient), what
        elif abs(expected[lane]) < SMALLEST_NORMAL:
            assert abs(found - encode("f32", expected[lane])) <= 1, what
        else:
            assert quotient == expected[lane], what


@pytest.mark.parametrize("mnemonic", MIXED)
@given(seed=st.integers(0, 1 << 30), low=st.tuples(*[st.booleans()] * 3), wide=st.tuples(*[st.booleans()] * 3))
@settings(max_examples=20, deadline=None)
def test_fma_mix_takes_fp32_or_a_half(
    mnemonic: str, seed: int, low: tuple[bool, ...], wide: tuple[bool, ...]
) -> None:
    """Rounded to fp32; mixlo and mixhi round that to fp16, into one half of the register, and keep the other."""
    random = np.random.default_rng(seed)
    sources = [draw("2f16" if half else "f32", random, LANES) for half in wide]
    selects = [",".join(str(int(one)) for one in given) for given in (low, wide)]
    negated = int(random.integers(3))
    names = [f"-v{n + 1}" if n == negated else f"|v{n + 1}|" if seed % 2 else f"v{n + 1}" for n in range(3)]
    clamp = seed % 3 == 0
    line = f"{mnemonic} v0, {', '.join(names)} op_sel:[{selects[0]}] op_sel_hi:[{selects[1]}]"
    vectors = {0: [0xA5A5C3C3] * LANES} | {n + 1: words for n, words in enumerate(sources)}
    found = harness.run(line + " clamp" * clamp, vectors).lanes(0)
    kind, shift = mnemonic[-3:], 16 if "mixhi" in mnemonic else 0
    for lane in range(LANES):
        numbers = []
        for n, words in enumerate(sources):
            word = words[lane]
            value = decode("f16", word >> 16 if low[n] else word & 0xFFFF) if wide[n] else decode("f32", word)
            numbers.append(-value if n == negated else abs(value) if seed % 2 else value)
        expected = rounded("f32", fused(*numbers))
        if clamp:
            expected = 0.0 if expected != expected or expected <= 0 else min(expected, 1.0)
        part = found[lane] >> shift & mask(bits(kind))
        assert matches(kind, part, expected), (line, numbers)
        assert kind == "f32" or (found[lane] ^ 0xA5A5C3C3) & ~(0xFFFF << shift) == 0


@pytest.mark.parametrize("line", ["v_add_f32_e64 v0, v1, v2 mul:2", "v_fma_f32 v0, v1, v2, v3 clamp div:2"])
def test_output_modifiers_that_depend_on_a_mode_are_refused(line: str) -> None:
    """mul and div are ignored in IEEE mode and where denormals are kept; compilers do not write them then."""
    with pytest.raises(UnknownInstruction):
        harness.machine(line)
