"""Two values in one register, or in two. Section VOP3P of the ISA guides: op_sel and op_sel_hi say which half each
source gives to the low and to the high result, neg_lo and neg_hi turn signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.group import F32, F64, I64, U32, Array, Group, spread
from m3gen.emulator.isa.floating import BINARY, fma, fma16
from m3gen.emulator.isa.integer import three_way
from m3gen.emulator.operand import Operand
from m3gen.emulator.operands import clamped, plain, reader, saturated
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import VALU, Step, custom

Read = Callable[[Group], Array]


def _part(operand: Operand, number: int) -> Operand:
    """One of the two registers of a source; a scalar constant is the same in both."""
    if operand.kind in "vas" and operand.count > 1:
        return Operand(operand.kind, operand.index + number, 1)
    return Operand(operand.kind, operand.index, 1, operand.value)


def _picks(line: Instruction, high: bool) -> tuple[int, ...]:
    given = line.modifiers.get("op_sel_hi" if high else "op_sel")
    return given if isinstance(given, tuple) else (int(high),) * 3


def _negative(line: Instruction, high: bool) -> tuple[int, ...]:
    given = line.modifiers.get("neg_hi" if high else "neg_lo")
    return given if isinstance(given, tuple) else (0, 0, 0)


def _signed(read: Read, negative: int) -> Read:
    return (lambda group: -read(group)) if negative else read


_FLOATS: dict[str, Callable[..., Array]] = {
    "add": BINARY["add"],
    "mul": BINARY["mul"],
    "fma": fma,
    "max": BINARY["max"],
    "min": BINARY["min"],
}


@custom(
    "v_pk_add_f32",
    "v_pk_mul_f32",
    "v_pk_fma_f32",
    unit=VALU,
    section="VOP3P",
    signature="2 x f32 : 2 x f32",
)
def _pair_of_registers(line: Instruction, machine: Any) -> Step:
    meaning = _FLOATS[line.mnemonic.split("_")[2]]
    halves: list[list[Read]] = []
    for high in (False, True):
        picks, negative = _picks(line, high), _negative(line, high)
        halves.append(
            [
                _signed(reader(_part(operand, picks[n]), "f32"), negative[n])
                for n, operand in enumerate(line.operands[1:])
            ]
        )
    low, top = halves
    target, finish = line.operands[0].index, clamped if line.modifiers.get("clamp") else _same

    def step(group: Group) -> None:
        first = finish(meaning(*[read(group) for read in low]))
        second = finish(meaning(*[read(group) for read in top]))
        group.put(target, first)
        group.put(target + 1, second)

    return step


@custom("v_pk_mov_b32", unit=VALU, section="VOP3P", signature="2 x u32 : 2 x u32")
def _pair_move(line: Instruction, machine: Any) -> Step:
    picks = line.modifiers.get("op_sel", (0, 0))
    assert isinstance(picks, tuple)
    low, top = (
        reader(_part(operand, pick), "u32") for operand, pick in zip(line.operands[1:], picks, strict=False)
    )
    target = line.operands[0].index

    def step(group: Group) -> None:
        first, second = low(group), top(group)
        group.put(target, spread(first, group.size))
        group.put(target + 1, spread(second, group.size))

    return step


_HALVES: dict[str, tuple[Any, Callable[..., Array]]] = {
    "add_f16": (np.float16, BINARY["add"]),
    "mul_f16": (np.float16, BINARY["mul"]),
    "max_f16": (np.float16, BINARY["max"]),
    "min_f16": (np.float16, BINARY["min"]),
    "fma_f16": (np.float16, fma16),
    "add_u16": (np.uint16, lambda x, y: x + y),
    "sub_u16": (np.uint16, lambda x, y: x - y),
    "sub_i16": (np.int16, lambda x, y: x - y),
    "add_i16": (np.int16, lambda x, y: x + y),
    "mul_lo_u16": (np.uint16, lambda x, y: x * y),
    "mad_u16": (np.uint16, lambda x, y, z: x * y + z),
    "max_u16": (np.uint16, np.maximum),
    "min_u16": (np.uint16, np.minimum),
    "max_i16": (np.int16, np.maximum),
    "min_i16": (np.int16, np.minimum),
    "lshlrev_b16": (np.uint16, lambda n, x: x << (n & np.uint16(15))),
    "lshrrev_b16": (np.uint16, lambda n, x: x >> (n & np.uint16(15))),
    "ashrrev_i16": (np.int16, lambda n, x: x >> (n & np.int16(15))),
}


_SATURATE = ("add_u16", "sub_u16", "sub_i16", "add_i16", "mad_u16")


@custom(*(f"v_pk_{name}" for name in _HALVES), unit=VALU, section="VOP3P", signature="2 x 16 : 2 x 16")
def _pair_of_halves(line: Instruction, machine: Any) -> Step:
    name = line.mnemonic.removeprefix("v_pk_")
    kind, meaning = _HALVES[name]
    clamp = bool(line.modifiers.get("clamp"))
    if clamp and kind is not np.float16 and name not in _SATURATE:
        raise UnknownInstruction(f"clamp on a result that has none, {line.where}")
    halves: list[list[Read]] = []
    for high in (False, True):
        picks, negative = _picks(line, high), _negative(line, high)
        halves.append(
            [_signed(_half(operand, picks[n], kind), negative[n]) for n, operand in enumerate(line.operands[1:])]
        )
    low, top = halves
    target = line.operands[0].index

    def result(group: Group, reads: list[Read]) -> Array:
        sources = [read(group) for read in reads]
        if not clamp:
            value = meaning(*sources)
        elif kind is np.float16:
            value = clamped(meaning(*sources))
        else:
            value = saturated(meaning(*[source.astype(I64) for source in sources]), kind)
        return np.ascontiguousarray(value).view(np.uint16).astype(U32)

    def step(group: Group) -> None:
        first, second = result(group, low), result(group, top)
        group.put(target, first | (second << U32(16)))

    return step


def _same(value: Array) -> Array:
    return value


def _half(operand: Operand, pick: int, kind: Any) -> Read:
    if operand.kind == "float":
        constant = np.array([[operand.value if not pick else 0.0]], np.float16).view(kind)
        return lambda group: constant
    read, shift = reader(_part(operand, 0), "u32"), U32(16 if pick else 0)
    return lambda group: (read(group) >> shift).astype(np.uint16).view(kind)


@custom("v_fma_mixlo_f16", "v_fma_mixhi_f16", unit=VALU, section="VOP3P", signature="f16 : x x x")
def _mixed_to_half(line: Instruction, machine: Any) -> Step:
    """fma of sources that are fp32 or, by op_sel_hi, a half of fp16; rounded to fp32, then to fp16 into one half of
    the target, whose other half stays."""
    picks, halves = line.modifiers.get("op_sel", (0, 0, 0)), line.modifiers.get("op_sel_hi", (0, 0, 0))
    reads = [
        _mixed_source(operand, bool(halves[number]), int(picks[number]))  # type: ignore[index]
        for number, operand in enumerate(line.operands[1:])
    ]
    target, is_high = line.operands[0].index, line.mnemonic.endswith("hi_f16")
    finish = clamped if line.modifiers.get("clamp") else _same

    def step(group: Group) -> None:
        half = finish(fma(*[read(group) for read in reads])).astype(np.float16).view(np.uint16).astype(U32)
        other = group.v[target] & U32(0x0000FFFF if is_high else 0xFFFF0000)
        group.put(target, other | (half << U32(16) if is_high else half))

    return step


def _mixed_source(operand: Operand, is_half: bool, pick: int) -> Read:
    if not is_half:
        return reader(operand, "f32")
    read = _half(Operand(operand.kind, operand.index, 1, operand.value), pick, np.float16)

    def signed(group: Group) -> Array:
        value = read(group).astype(F32)
        value = np.abs(value) if operand.absolute else value
        return -value if operand.negated else value

    return signed


@custom(
    "v_dot2_f32_bf16", "v_dot2c_f32_bf16", "v_dot2_f32_f16", "v_dot2c_f32_f16",
    unit=VALU, section="VOP3P", signature="f32 : 2 x 16 2 x 16 f32",
)  # fmt: skip
def _dot(line: Instruction, machine: Any) -> Step:
    """Sum of two products and an addend; summed in double precision, rounded once."""
    is_bf16 = line.mnemonic.endswith("bf16")
    reads = [reader(operand, "u32") for operand in line.operands[1:3]]
    addend = reader(line.operands[3] if len(line.operands) > 3 else line.operands[0], "f32")
    target = line.operands[0].index

    def halves(word: Array) -> tuple[Array, Array]:
        if is_bf16:
            return (word << U32(16)).view(F32).astype(F64), (word & U32(0xFFFF0000)).view(F32).astype(F64)
        low, top = (word & U32(0xFFFF)).astype(np.uint16), (word >> U32(16)).astype(np.uint16)
        return low.view(np.float16).astype(F64), top.view(np.float16).astype(F64)

    def step(group: Group) -> None:
        (a, b), (c, d) = (halves(read(group)) for read in reads)
        group.put(target, (a * c + b * d + addend(group)).astype(F32))

    return step


@custom("v_bitop3_b32", "v_bitop3_b16", unit=VALU, section="VOP3 (CDNA4)", signature="u32 : u32 u32 u32")
def _bitop3(line: Instruction, machine: Any) -> Step:
    table, kind = int(str(line.modifiers["bitop3"]), 0), f"u{line.mnemonic[-2:]}"
    return plain(line, f"{kind} : {kind} {kind} {kind}", lambda x, y, z: three_way(table, x, y, z))
