"""Conversions. Sections VOP1 and VOP3 of the ISA guides; fp8 is e4m3fnuz and e5m2fnuz on gfx942, the OCP formats on
gfx950."""

from __future__ import annotations

from typing import Any

import numpy as np

from m3gen.emulator.formats import Format, encode, of_arch
from m3gen.emulator.group import F32, F64, I32, U32, Array, Group
from m3gen.emulator.operands import Read, reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import VALU, Step, custom, several

F16 = np.float16


def bf16_bits(x: Array) -> Array:
    """fp32 to bf16, to nearest even; the bits in the low half of uint32."""
    bits = np.ascontiguousarray(x).view(U32)
    rounded = (bits + (U32(0x7FFF) + ((bits >> U32(16)) & U32(1)))) >> U32(16)
    return np.where(np.isnan(x), (bits >> U32(16)) | U32(0x40), rounded)


def _integer(x: Array, kind: Any) -> Array:
    """Towards zero, saturated, NaN to 0."""
    limits = np.iinfo(kind)
    whole = np.trunc(np.where(np.isnan(x), 0, x).astype(F64))
    return np.clip(whole, limits.min, limits.max).astype(np.int64).astype(kind)


def _half_bits(x: Array) -> Array:
    return _bits16(x.astype(F16))


def _bits16(x: Array) -> Array:
    return np.ascontiguousarray(x).view(np.uint16).astype(U32)


def _toward_zero16(x: Array) -> Array:
    """fp32 to fp16, towards zero, as bits."""
    near = x.astype(F16)
    over = np.abs(near.astype(F32)) > np.abs(x)
    bits = np.ascontiguousarray(near).view(np.uint16)
    return np.where(over & ~np.isnan(x), bits - np.uint16(1), bits).astype(U32)


several(
    {
        "v_cvt_f32_u32": ("f32 : u32", lambda x: x.astype(F32)),
        "v_cvt_f32_i32": ("f32 : i32", lambda x: x.astype(F32)),
        "v_cvt_u32_f32": ("u32 : f32", lambda x: _integer(x, U32)),
        "v_cvt_i32_f32": ("i32 : f32", lambda x: _integer(x, I32)),
        "v_cvt_rpi_i32_f32": ("i32 : f32", lambda x: _integer(np.floor(x + F32(0.5)), I32)),
        "v_cvt_flr_i32_f32": ("i32 : f32", lambda x: _integer(np.floor(x), I32)),
        "v_cvt_f16_f32": ("f16 : f32", lambda x: x.astype(F16)),
        "v_cvt_f32_f16": ("f32 : f16", lambda x: x.astype(F32)),
        "v_cvt_f16_u16": ("f16 : u16", lambda x: x.astype(F16)),
        "v_cvt_f16_i16": ("f16 : i16", lambda x: x.astype(F16)),
        "v_cvt_u16_f16": ("u16 : f16", lambda x: _integer(x, np.uint16)),
        "v_cvt_i16_f16": ("i16 : f16", lambda x: _integer(x, np.int16)),
        "v_cvt_f64_f32": ("f64 : f32", lambda x: x.astype(F64)),
        "v_cvt_f32_f64": ("f32 : f64", lambda x: x.astype(F32)),
        "v_cvt_f64_u32": ("f64 : u32", lambda x: x.astype(F64)),
        "v_cvt_f64_i32": ("f64 : i32", lambda x: x.astype(F64)),
        "v_cvt_u32_f64": ("u32 : f64", lambda x: _integer(x, U32)),
        "v_cvt_i32_f64": ("i32 : f64", lambda x: _integer(x, I32)),
        "v_cvt_f32_bf16": ("f32 : u16", lambda x: (x.astype(U32) << U32(16)).view(F32)),
        **{
            f"v_cvt_f32_ubyte{n}": ("f32 : u32", lambda x, n=n: ((x >> U32(8 * n)) & U32(255)).astype(F32))
            for n in range(4)
        },
    },
    VALU,
    "VOP1",
)
several(
    {
        "v_cvt_pk_bf16_f32": ("u32 : f32 f32", lambda x, y: bf16_bits(x) | (bf16_bits(y) << U32(16))),
        "v_cvt_pkrtz_f16_f32": ("u32 : f32 f32", lambda x, y: _toward_zero16(x) | (_toward_zero16(y) << U32(16))),
        "v_cvt_pk_f16_f32": ("u32 : f32 f32", lambda x, y: _half_bits(x) | (_half_bits(y) << U32(16))),
        "v_pack_b32_f16": ("u32 : f16 f16", lambda x, y: _bits16(x) | (_bits16(y) << U32(16))),
        "v_cvt_pk_u16_u32": (
            "u32 : u32 u32",
            lambda x, y: np.minimum(x, U32(0xFFFF)) | (np.minimum(y, U32(0xFFFF)) << U32(16)),
        ),
    },
    VALU,
    "VOP3",
)


def _format(line: Instruction, machine: Any) -> Format:
    return of_arch(machine.arch, "bf8" if "bf8" in line.mnemonic else "fp8")


def _high_word(line: Instruction, place: int = 0) -> bool:
    """Whether a packed source (by its number), or the destination (behind the last source), is the high word."""
    if line.suffix == "sdwa":
        return line.modifiers.get("src0_sel") == "WORD_1"
    op_sel = line.modifiers.get("op_sel", ())
    return isinstance(op_sel, tuple) and len(op_sel) > place and bool(op_sel[place])


@custom("v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8", unit=VALU, section="VOP1", signature="2 x f32 : 2 x fp8")
def _pair_from_fp8(line: Instruction, machine: Any) -> Step:
    values, shift = _format(line, machine).values, U32(16 if _high_word(line) else 0)
    read, target = reader(line.operands[1], "u32"), line.operands[0].index

    def step(group: Group) -> None:
        word = read(group) >> shift
        group.put(target, values[word & U32(0xFF)])
        group.put(target + 1, values[(word >> U32(8)) & U32(0xFF)])

    return step


@custom("v_cvt_f32_fp8", "v_cvt_f32_bf8", unit=VALU, section="VOP1", signature="f32 : fp8")
def _one_from_fp8(line: Instruction, machine: Any) -> Step:
    values, select = _format(line, machine).values, str(line.modifiers.get("src0_sel", "BYTE_0"))
    if line.suffix != "sdwa" and "byte_sel" in line.modifiers:
        select = f"BYTE_{line.modifiers['byte_sel']}"
    op_sel = line.modifiers.get("op_sel", (0, 0))
    byte = int(select[-1]) if select.startswith("BYTE") else 0
    if line.suffix != "sdwa" and isinstance(op_sel, tuple):
        byte = int(op_sel[0]) * 2 + (int(op_sel[1]) if len(op_sel) > 1 else 0) if any(op_sel) else byte
    read, target, shift = reader(line.operands[1], "u32"), line.operands[0].index, U32(8 * byte)

    def step(group: Group) -> None:
        group.put(target, values[(read(group) >> shift) & U32(0xFF)])

    return step


@custom("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", unit=VALU, section="VOP3", signature="2 x fp8 : f32 f32")
def _pair_to_fp8(line: Instruction, machine: Any) -> Step:
    """Into the word that op_sel names; the other one is kept."""
    form, high = _format(line, machine), _high_word(line, len(line.operands) - 1)
    reads = [reader(operand, "f32") for operand in line.operands[1:3]]
    target, shift = line.operands[0].index, U32(16 if high else 0)
    keep = U32(0x0000FFFF if high else 0xFFFF0000)

    def step(group: Group) -> None:
        low, top = (encode(form, read(group)).astype(U32) for read in reads)
        group.put(target, (group.v[target] & keep) | ((low | (top << U32(8))) << shift))

    return step


@custom(
    "v_cvt_scalef32_pk_f32_fp8",
    "v_cvt_scalef32_pk_f32_bf8",
    "v_cvt_scalef32_pk_bf16_fp8",
    "v_cvt_scalef32_pk_bf16_bf8",
    "v_cvt_scalef32_pk_f16_fp8",
    "v_cvt_scalef32_pk_f16_bf8",
    unit=VALU,
    section="VOP3 (CDNA4)",
    signature="2 x f32 : 2 x fp8, scale",
)
def _scaled_pair(line: Instruction, machine: Any) -> Step:
    """Values times the power of two of a scale's exponent."""
    values, shift = _format(line, machine).values, U32(16 if _high_word(line) else 0)
    read, scale = reader(line.operands[1], "u32"), reader(line.operands[2], "u32")
    target, into = line.operands[0].index, line.mnemonic.split("_")[4]

    def step(group: Group) -> None:
        word = read(group) >> shift
        exponent = ((scale(group) >> U32(23)) & U32(0xFF)).astype(I32) - 127
        low, top = (
            np.ldexp(values[(word >> U32(at)) & U32(0xFF)].astype(F64), exponent).astype(F32) for at in (0, 8)
        )
        if into == "f32":
            group.put(target, low)
            group.put(target + 1, top)
        elif into == "bf16":
            group.put(target, bf16_bits(low) | (bf16_bits(top) << U32(16)))
        else:
            group.put(target, _half_bits(low) | (_half_bits(top) << U32(16)))

    return step


def _halves(read: Read, is_bf16: bool) -> list[Read]:
    """Both halves of a word as fp32."""
    if is_bf16:
        return [
            lambda group: (read(group) << U32(16)).view(F32),
            lambda group: (read(group) & U32(0xFFFF0000)).view(F32),
        ]

    def half(at: int) -> Read:
        return lambda group: (read(group) >> U32(at)).astype(np.uint16).view(F16).astype(F32)

    return [half(0), half(16)]


@custom(
    *(f"v_cvt_scalef32_pk_{into}_{source}" for into in ("fp8", "bf8") for source in ("f32", "bf16", "f16")),
    unit=VALU,
    section="VOP3 (CDNA4)",
    signature="2 x fp8 : f32 f32, scale; or 2 x 16, scale",
)
def _scaled_to_fp8(line: Instruction, machine: Any) -> Step:
    """Values over the power of two of a scale's exponent."""
    form, high = _format(line, machine), _high_word(line, len(line.operands) - 1)
    *sources, last = line.operands[1:]
    scale = reader(last, "u32")
    if len(sources) == 2:
        reads = [reader(operand, "f32") for operand in sources]
    else:
        reads = _halves(reader(sources[0], "u32"), line.mnemonic.endswith("_bf16"))
    target, shift = line.operands[0].index, U32(16 if high else 0)
    keep = U32(0x0000FFFF if high else 0xFFFF0000)

    def step(group: Group) -> None:
        exponent = 127 - ((scale(group) >> U32(23)) & U32(0xFF)).astype(I32)
        low, top = (
            encode(form, np.ldexp(read(group).astype(F64), exponent).astype(F32)).astype(U32) for read in reads
        )
        group.put(target, (group.v[target] & keep) | ((low | (top << U32(8))) << shift))

    return step
