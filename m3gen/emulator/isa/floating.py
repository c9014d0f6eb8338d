"""Floating point of the vector unit, rounded as the hardware does: to nearest even, denormals kept.

Transcendentals are the correctly rounded value where numpy's is; the hardware's are within 1 unit in the last place
(ISA guides, "V_EXP_F32" and others). Sections VOP1, VOP2, VOP3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from m3gen.emulator.group import F32, F64, I32, I64, U32, Array, Group
from m3gen.emulator.operands import clamped, plain, reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import TRANSCENDENTAL, VALU, Step, custom, instruction, several

F16 = np.float16


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z of fp32, rounded once.

    The product is exact in double precision. The sum is rounded to odd there, which makes the second rounding to
    single precision the only one that counts (Boldo and Melquiond, 2008).
    """
    product, addend = x.astype(F64) * y.astype(F64), z.astype(F64)
    return _odd_sum(product, addend).astype(F32)


def _odd_sum(a: Array, b: Array) -> Array:
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = np.ascontiguousarray(total).view(I64)
    inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    if not inexact.any():
        return total
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, bits + step, bits).view(F64)


def fma64(x: Array, y: Array, z: Array) -> Array:
    """Of doubles, by way of fractions: rare, so it may be slow."""
    return np.asarray(np.frompyfunc(_fma_of_doubles, 3, 1)(x, y, z), F64)


def _fma_of_doubles(x: float, y: float, z: float) -> float:
    if not all(map(math.isfinite, (x, y, z))):
        return z if math.isfinite(x) and math.isfinite(y) else x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z if z == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma16(x: Array, y: Array, z: Array) -> Array:
    product = x.astype(F64) * y.astype(F64)
    return _odd_sum(product, z.astype(F64)).astype(F16)


def _max(x: Array, y: Array) -> Array:
    """IEEE mode: of a number and a quiet NaN the number, of a signalling one a NaN; +0 is above -0."""
    result = np.where((x == 0) & (y == 0), np.where(np.signbit(x), y, x), np.fmax(x, y))
    return np.where(_signalling(x) | _signalling(y), np.nan, result).astype(x.dtype)


def _min(x: Array, y: Array) -> Array:
    result = np.where((x == 0) & (y == 0), np.where(np.signbit(x), x, y), np.fmin(x, y))
    return np.where(_signalling(x) | _signalling(y), np.nan, result).astype(x.dtype)


def _signalling(x: Array) -> Array:
    bits = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
    quiet = bits.dtype.type(1 << (np.finfo(x.dtype).nmant - 1))
    return np.isnan(x) & (bits & quiet == 0)


def _median(x: Array, y: Array, z: Array) -> Array:
    """The larger of those that are left when the first that equals the largest is taken away; with a NaN the least."""
    largest = _max(_max(x, y), z)
    middle = np.where(largest == x, _max(y, z), np.where(largest == y, _max(x, z), _max(x, y)))
    nan = np.isnan(x) | np.isnan(y) | np.isnan(z)
    return np.where(nan, _min(_min(x, y), z), middle)


def _maximum(x: Array, y: Array) -> Array:
    """IEEE 754-2019: a NaN wins."""
    return np.where(np.isnan(x) | np.isnan(y), np.nan, _max(x, y)).astype(x.dtype)


def _minimum(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, _min(x, y)).astype(x.dtype)


def _power(x: Array, n: Array) -> Array:
    return np.ldexp(x.astype(F64), np.clip(n, -2000, 2000)).astype(x.dtype)


def _fraction(x: Array) -> Array:
    return np.minimum(x - np.floor(x), x.dtype.type(np.nextafter(x.dtype.type(1), x.dtype.type(0))))


def _of_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.astype(F64)).astype(x.dtype)


def _flushing(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """fp32 transcendentals take and give zero for denormals, whatever the mode."""

    def flush(x: Array) -> Array:
        return np.where(_denormal(x), np.copysign(F32(0), x), x)

    return lambda x: flush(function(flush(x).astype(F64)).astype(F32))


def _turned(function: Callable[[Array], Array], beyond: float) -> Callable[[Array], Array]:
    """Of a number of turns; what the guides say outside -256 ... 256."""

    def of(x: Array) -> Array:
        value = function(2 * np.pi * (x - np.rint(x)))
        return np.where((np.abs(x) > 256) & np.isfinite(x), beyond, value)

    return of


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "subrev": lambda x, y: y - x,
    "mul": lambda x, y: x * y,
    "max": _max,
    "min": _min,
}
for _name, _of in BINARY.items():
    instruction(f"v_{_name}_f32", "f32 : f32 f32", VALU, "VOP2")(_of)
    instruction(f"v_{_name}_f16", "f16 : f16 f16", VALU, "VOP2")(_of)
    if _name in ("add", "mul", "max", "min"):
        instruction(f"v_{_name}_f64", "f64 : f64 f64", VALU, "VOP3")(_of)

several(
    {
        "v_mul_legacy_f32": ("f32 : f32 f32", lambda x, y: np.where((x == 0) | (y == 0), F32(0), x * y)),
        "v_fmac_f32": ("f32 : f32 f32 =f32", fma),
        "v_fma_f32": ("f32 : f32 f32 f32", fma),
        "v_fma_f16": ("f16 : f16 f16 f16", fma16),
        "v_fmamk_f32": ("f32 : f32 f32 f32", lambda x, k, y: fma(x, k, y)),
        "v_fmaak_f32": ("f32 : f32 f32 f32", lambda x, y, k: fma(x, y, k)),
        "v_max3_f32": ("f32 : f32 f32 f32", lambda x, y, z: _max(_max(x, y), z)),
        "v_min3_f32": ("f32 : f32 f32 f32", lambda x, y, z: _min(_min(x, y), z)),
        "v_med3_f32": ("f32 : f32 f32 f32", _median),
        "v_max3_f16": ("f16 : f16 f16 f16", lambda x, y, z: _max(_max(x, y), z)),
        "v_min3_f16": ("f16 : f16 f16 f16", lambda x, y, z: _min(_min(x, y), z)),
        "v_maximum3_f32": (
            "f32 : f32 f32 f32",
            lambda x, y, z: _maximum(_maximum(x, y), z),
        ),
        "v_minimum3_f32": ("f32 : f32 f32 f32", lambda x, y, z: _minimum(_minimum(x, y), z)),
        "v_ldexp_f32": ("f32 : f32 i32", _power),
        "v_ldexp_f16": ("f16 : f16 i16", lambda x, n: _power(x, n.astype(I32))),
        "v_ldexp_f64": ("f64 : f64 i32", lambda x, n: np.ldexp(x, np.clip(n, -4000, 4000))),
    },
    VALU,
    "VOP3",
)
instruction("v_fma_f64", "f64 : f64 f64 f64", VALU, "VOP3")(lambda x, y, z: fma64(x, y, z))
instruction("v_fmac_f64", "f64 : f64 f64 =f64", VALU, "VOP2")(lambda x, y, z: fma64(x, y, z))

_UNARY: dict[str, Callable[[Array], Array]] = {
    "trunc": np.trunc,
    "ceil": np.ceil,
    "floor": np.floor,
    "rndne": np.rint,
    "fract": _fraction,
}
for _name, _one in _UNARY.items():
    instruction(f"v_{_name}_f32", "f32 : f32", VALU, "VOP1")(_one)
    instruction(f"v_{_name}_f16", "f16 : f16", VALU, "VOP1")(_one)
    instruction(f"v_{_name}_f64", "f64 : f64", VALU, "VOP1")(_one)

_TRANSCENDENTALS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp2,
    "log": np.log2,
    "rcp": lambda x: 1.0 / x,
    "rsq": lambda x: 1.0 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": _turned(np.sin, 0.0),
    "cos": _turned(np.cos, 1.0),
}
for _name, _one in _TRANSCENDENTALS.items():
    _flushes = _of_double if _name in ("sin", "cos") else _flushing
    instruction(f"v_{_name}_f32", "f32 : f32", TRANSCENDENTAL, "VOP1", cycles=16)(_flushes(_one))
    instruction(f"v_{_name}_f16", "f16 : f16", TRANSCENDENTAL, "VOP1", cycles=16)(_of_double(_one))
    if _name in ("rcp", "rsq", "sqrt"):
        instruction(f"v_{_name}_f64", "f64 : f64", TRANSCENDENTAL, "VOP1", cycles=16)(_one)
instruction("v_rcp_iflag_f32", "f32 : f32", TRANSCENDENTAL, "VOP1", cycles=16)(_flushing(_TRANSCENDENTALS["rcp"]))


def _exponent(x: Array) -> Array:
    exponent = np.frexp(x)[1]
    return np.where(np.isfinite(x) & (x != 0), exponent, 0).astype(I32)


instruction("v_frexp_exp_i32_f32", "i32 : f32", VALU, "VOP1")(_exponent)
instruction("v_frexp_exp_i32_f64", "i32 : f64", VALU, "VOP1")(_exponent)
instruction("v_frexp_mant_f32", "f32 : f32", VALU, "VOP1")(
    lambda x: np.asarray(np.where(np.isfinite(x), np.frexp(x)[0], x)).astype(F32)
)


# The division sequence: scale, reciprocal and refinement, fmas, fixup (VOP3, "V_DIV_SCALE_F32" and following).


@custom("v_div_scale_f32", unit=VALU, section="VOP3", signature="f32 lanes : f32 f32 f32")
def _div_scale(line: Instruction, machine: Any) -> Step:
    """Scale a denominator (source 0 is source 1) or a numerator so that the refinement stays in range; VCC says in
    which lanes the quotient is to be scaled back."""

    def meaning(s0: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
        top, bottom = _biased(numerator), _biased(denominator)
        tiny_reciprocal = _denormal((1.0 / denominator.astype(F64)).astype(F32))
        tiny_quotient = _denormal((numerator.astype(F64) / denominator.astype(F64)).astype(F32))
        is_denominator, is_numerator = s0 == denominator, s0 == numerator
        invalid = (denominator == 0) | (numerator == 0)
        up, down = F32(2.0**64), F32(2.0**-64)
        far = (top - bottom) >= 96
        cases = [
            (invalid, np.full_like(s0, np.nan), False),
            (far, np.where(is_denominator, s0 * up, s0), True),
            (_denormal(denominator), s0 * up, False),
            (tiny_reciprocal & tiny_quotient, np.where(is_denominator, s0 * down, s0), True),
            (tiny_reciprocal, s0 * down, False),
            (tiny_quotient, np.where(is_numerator, s0 * up, s0), True),
            (top <= 23, s0 * up, False),
        ]
        scaled, flag = s0, np.zeros(np.broadcast_shapes(s0.shape, numerator.shape), bool)
        done = flag
        for applies, value, sets in cases:
            now = applies & ~done
            scaled = np.where(now, value, scaled)
            flag = flag | (now & sets)
            done = done | applies
        return scaled.astype(F32), flag

    return plain(line, "f32 lanes : f32 f32 f32", meaning)


def _biased(x: Array) -> Array:
    return ((np.ascontiguousarray(x).view(U32) >> U32(23)) & U32(0xFF)).astype(I32)


def _denormal(x: Array) -> Array:
    return (_biased(x) == 0) & (x != 0)


@custom("v_div_fmas_f32", unit=VALU, section="VOP3", signature="f32 : f32 f32 f32 @vcc")
def _div_fmas(line: Instruction, machine: Any) -> Step:
    """fma, scaled by 2^64, or 2^-64 for a large result, where VCC says."""

    def meaning(x: Array, y: Array, z: Array, scale: Array) -> Array:
        result = fma(x, y, z)
        if not scale.any():
            return result
        power = np.where(_biased(z) > 127, 64, -64)
        return np.where(scale, np.ldexp(result.astype(F64), power).astype(F32), result)

    return plain(line, "f32 : f32 f32 f32 @vcc", meaning)


def _div_fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The quotient with the cases that the refinement cannot do: it makes a NaN of what is too large."""
    sign = np.signbit(denominator) ^ np.signbit(numerator)
    infinity, zero = np.where(sign, F32(-np.inf), F32(np.inf)), np.where(sign, F32(-0.0), F32(0.0))
    result = np.where(np.isnan(quotient), infinity, np.where(sign, -np.abs(quotient), np.abs(quotient)))
    underflow = (_biased(numerator) - _biased(denominator)) < -150
    result = np.where(underflow | np.isinf(denominator) | (numerator == 0), zero, result)
    result = np.where((denominator == 0) | np.isinf(numerator), infinity, result)
    invalid = ((denominator == 0) & (numerator == 0)) | (np.isinf(denominator) & np.isinf(numerator))
    nan = np.isnan(denominator) | np.isnan(numerator) | invalid
    return np.where(nan, F32(np.nan), result).astype(F32)


instruction("v_div_fixup_f32", "f32 : f32 f32 f32", VALU, "VOP3")(_div_fixup)


def _always(value: Array) -> Callable[[Group], Array]:
    return lambda group: value


@custom("v_fma_mix_f32", unit=VALU, section="VOP3P", signature="f32 : x x x")
def _mixed(line: Instruction, machine: Any) -> Step:
    """fma of sources that are fp32 or, by op_sel_hi, a half of fp16."""
    op_sel, wide = line.modifiers.get("op_sel", (0, 0, 0)), line.modifiers.get("op_sel_hi", (0, 0, 0))
    reads = []
    for number, operand in enumerate(line.operands[1:]):
        if not wide[number]:  # type: ignore[index]
            reads.append(reader(operand, "f32"))
            continue
        if operand.kind == "float":  # a constant of fp16 in the low half
            constant = np.array([[operand.value if not op_sel[number] else 0.0]], F16).astype(F32)  # type: ignore[index]
            reads.append(_always(constant))
            continue
        raw = reader(type(operand)(operand.kind, operand.index, operand.count, operand.value), "u32")
        shift = U32(16 if op_sel[number] else 0)  # type: ignore[index]

        def half(group: Group, raw: Any = raw, shift: Any = shift, operand: Any = operand) -> Array:
            value = (raw(group) >> shift).astype(np.uint16).view(F16).astype(F32)
            value = np.abs(value) if operand.absolute else value
            return -value if operand.negated else value

        reads.append(half)
    target, clamp = line.operands[0].index, bool(line.modifiers.get("clamp"))

    def step(group: Group) -> None:
        result = fma(*[read(group) for read in reads])
        group.put(target, clamped(result) if clamp else result)

    return step
