"""Scalar instructions: one value for a wave. Sections SOP1, SOP2, SOPC, SOPK of the ISA guides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from m3gen.emulator.group import I32, I64, U32, U64, Array, Group
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import SALU, Step, custom, instruction, several

Binary = Callable[[Array, Array], Any]


def _nonzero(of: Binary) -> Binary:
    """The result and whether it is not zero, which goes to SCC."""

    def both(x: Array, y: Array) -> tuple[Array, Array]:
        result = of(x, y)
        return result, result != 0

    return both


def _wide(x: Array) -> Array:
    return x.astype(I64)


def _carry(total: Array) -> tuple[Array, Array]:
    """Of int64 sums of unsigned numbers: the low word, and whether it went past either end."""
    return (total & 0xFFFFFFFF).astype(U32), (total > 0xFFFFFFFF) | (total < 0)


def _overflow(total: Array) -> tuple[Array, Array]:
    """Of int64 sums of signed numbers."""
    return total.astype(I32), (total < -(1 << 31)) | (total >= 1 << 31)


BITWISE: dict[str, Binary] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "andn2": lambda x, y: x & ~y,
    "orn2": lambda x, y: x | ~y,
    "nand": lambda x, y: ~(x & y),
    "nor": lambda x, y: ~(x | y),
    "xnor": lambda x, y: ~(x ^ y),
}
for _name, _of in BITWISE.items():
    instruction(f"s_{_name}_b32", "u32 scc : u32 u32", SALU, "SOP2")(_nonzero(_of))
    instruction(f"s_{_name}_b64", "u64 scc : u64 u64", SALU, "SOP2")(_nonzero(_of))

_SHIFTS: dict[str, tuple[str, Binary]] = {
    "s_lshl_b32": ("u32 scc : u32 u32", lambda x, n: x << (n & U32(31))),
    "s_lshr_b32": ("u32 scc : u32 u32", lambda x, n: x >> (n & U32(31))),
    "s_ashr_i32": ("i32 scc : i32 u32", lambda x, n: x >> (n & U32(31)).view(I32)),
    "s_lshl_b64": ("u64 scc : u64 u32", lambda x, n: x << (n & U32(63)).astype(U64)),
    "s_lshr_b64": ("u64 scc : u64 u32", lambda x, n: x >> (n & U32(63)).astype(U64)),
    "s_ashr_i64": ("i64 scc : i64 u32", lambda x, n: x >> (n & U32(63)).astype(I64)),
    "s_bfe_u32": ("u32 scc : u32 u32", lambda x, n: _extract(x, n, signed=False)),
    "s_bfe_i32": ("i32 scc : i32 u32", lambda x, n: _extract(x, n, signed=True)),
}
for _name, (_signature, _of) in _SHIFTS.items():
    instruction(_name, _signature, SALU, "SOP2")(_nonzero(_of))


def _extract(x: Array, field: Array, *, signed: bool) -> Array:
    """Bits from field[4:0] on, field[22:16] of them."""
    width = np.minimum((field >> U32(16)) & U32(0x7F), U32(32)).astype(I64)
    bits = (_wide(x) >> (field & U32(31)).astype(I64)) & ((I64(1) << width) - 1)
    if not signed:
        return bits.astype(U32)
    top = I64(1) << np.maximum(width - 1, 0)
    return np.where((width > 0) & (bits & top != 0), bits - (top << 1), bits).astype(I32)


several(
    {
        "s_add_u32": ("u32 scc : u32 u32", lambda x, y: _carry(_wide(x) + _wide(y))),
        "s_addc_u32": ("u32 scc : u32 u32 @scc", lambda x, y, c: _carry(_wide(x) + _wide(y) + c)),
        "s_sub_u32": ("u32 scc : u32 u32", lambda x, y: _carry(_wide(x) - _wide(y))),
        "s_subb_u32": ("u32 scc : u32 u32 @scc", lambda x, y, c: _carry(_wide(x) - _wide(y) - c)),
        "s_add_i32": ("i32 scc : i32 i32", lambda x, y: _overflow(_wide(x) + _wide(y))),
        "s_sub_i32": ("i32 scc : i32 i32", lambda x, y: _overflow(_wide(x) - _wide(y))),
        "s_mul_i32": ("u32 : u32 u32", lambda x, y: x * y),
        "s_mul_hi_u32": ("u32 : u32 u32", lambda x, y: ((x.astype(U64) * y.astype(U64)) >> U64(32)).astype(U32)),
        "s_mul_hi_i32": ("i32 : i32 i32", lambda x, y: ((_wide(x) * _wide(y)) >> I64(32)).astype(I32)),
        "s_min_i32": ("i32 scc : i32 i32", lambda x, y: (np.minimum(x, y), x < y)),
        "s_max_i32": ("i32 scc : i32 i32", lambda x, y: (np.maximum(x, y), x >= y)),
        "s_min_u32": ("u32 scc : u32 u32", lambda x, y: (np.minimum(x, y), x < y)),
        "s_max_u32": ("u32 scc : u32 u32", lambda x, y: (np.maximum(x, y), x >= y)),
        "s_bfm_b32": ("u32 : u32 u32", lambda n, at: ((U32(1) << (n & U32(31))) - U32(1)) << (at & U32(31))),
        "s_cselect_b32": ("u32 : u32 u32 @scc", lambda x, y, c: np.where(c, x, y)),
        "s_cselect_b64": ("u64 : u64 u64 @scc", lambda x, y, c: np.where(c, x, y)),
        "s_pack_ll_b32_b16": ("u32 : u32 u32", lambda x, y: (x & U32(0xFFFF)) | (y << U32(16))),
        "s_pack_lh_b32_b16": ("u32 : u32 u32", lambda x, y: (x & U32(0xFFFF)) | (y & U32(0xFFFF0000))),
        "s_pack_hh_b32_b16": ("u32 : u32 u32", lambda x, y: (x >> U32(16)) | (y & U32(0xFFFF0000))),
        **{
            f"s_lshl{n}_add_u32": (
                "u32 scc : u32 u32",
                lambda x, y, n=n: _carry((_wide(x) << I64(n)) + _wide(y)),
            )
            for n in (1, 2, 3, 4)
        },
    },
    SALU,
    "SOP2",
)


def _count(x: Array) -> tuple[Array, Array]:
    bits = np.bitwise_count(x).astype(U32)
    return bits, bits != 0


def _first_one(x: Array) -> Array:
    """The lowest bit that is set, -1 where none is."""
    x = x.astype(U64)
    lowest = x & (~x + U64(1))
    return np.where(x == 0, -1, np.bitwise_count(lowest - U64(1)).astype(I32)).astype(I32)


def _leading_zeros(x: Array) -> Array:
    """Zeros before the highest bit that is set, -1 where none is."""
    return np.where(x == 0, -1, 31 - np.floor(np.log2(np.maximum(x, 1).astype(np.float64)))).astype(I32)


def _sign_bits(x: Array) -> Array:
    """Bits before the first that differs from the sign, -1 where none does."""
    bits = np.where(x < 0, ~x, x).view(U32)
    return np.where(bits == 0, I32(-1), _leading_zeros(bits))


def _reverse(x: Array) -> Array:
    for shift, keep in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        x = ((x >> U32(shift)) & U32(keep)) | ((x & U32(keep)) << U32(shift))
    return (x >> U32(16)) | (x << U32(16))


several(
    {
        "s_mov_b32": ("u32 : u32", lambda x: x),
        "s_mov_b64": ("u64 : u64", lambda x: x),
        "s_not_b32": ("u32 scc : u32", lambda x: (~x, ~x != 0)),
        "s_not_b64": ("u64 scc : u64", lambda x: (~x, ~x != 0)),
        "s_abs_i32": ("i32 scc : i32", lambda x: (np.abs(x), x != 0)),
        "s_bcnt1_i32_b32": ("u32 scc : u32", _count),
        "s_bcnt1_i32_b64": ("u32 scc : u64", _count),
        "s_ff1_i32_b32": ("i32 : u32", _first_one),
        "s_ff1_i32_b64": ("i32 : u64", _first_one),
        "s_flbit_i32_b32": ("i32 : u32", _leading_zeros),
        "s_flbit_i32": ("i32 : i32", _sign_bits),
        "s_brev_b32": ("u32 : u32", _reverse),
        "s_sext_i32_i8": ("i32 : u32", lambda x: (x << U32(24)).view(I32) >> I32(24)),
        "s_sext_i32_i16": ("i32 : u32", lambda x: (x << U32(16)).view(I32) >> I32(16)),
        "s_bitset0_b32": ("u32 : u32 =u32", lambda n, x: x & ~(U32(1) << (n & U32(31)))),
        "s_bitset1_b32": ("u32 : u32 =u32", lambda n, x: x | (U32(1) << (n & U32(31)))),
    },
    SALU,
    "SOP1",
)

_COMPARES: dict[str, Binary] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
for _name, _of in _COMPARES.items():
    for _kind in ("u32", "i32"):
        instruction(f"s_cmp_{_name}_{_kind}", f"scc : {_kind} {_kind}", SALU, "SOPC")(_of)
    if _name in ("eq", "lg"):
        instruction(f"s_cmp_{_name}_u64", "scc : u64 u64", SALU, "SOPC")(_of)
for _bit in (0, 1):
    instruction(f"s_bitcmp{_bit}_b32", "scc : u32 u32", SALU, "SOPC")(
        lambda x, n, bit=_bit: ((x >> (n & U32(31))) & U32(1)) == bit
    )
    instruction(f"s_bitcmp{_bit}_b64", "scc : u64 u32", SALU, "SOPC")(
        lambda x, n, bit=_bit: ((x >> (n & U32(63)).astype(U64)) & U64(1)) == bit
    )


@custom("s_movk_i32", "s_addk_i32", "s_mulk_i32", "s_cmovk_i32", unit=SALU, section="SOPK", signature="i32 : i16")
def _with_constant(line: Instruction, machine: Any) -> Step:
    target, constant = line.operands
    value = np.array([[_signed16(int(constant.value))]], I32)
    register = target.index
    read = reader(target, "i32")

    def move(group: Group) -> None:
        group.put_scalar(register, value.view(U32))

    def move_if(group: Group) -> None:
        group.put_scalar(register, np.where(group.scc, value, read(group)).view(U32))

    def add(group: Group) -> None:
        result, group.scc = _overflow(_wide(read(group)) + value)
        group.put_scalar(register, result.view(U32))

    def multiply(group: Group) -> None:
        group.put_scalar(register, (read(group) * value).view(U32))

    return {"s_movk_i32": move, "s_addk_i32": add, "s_mulk_i32": multiply, "s_cmovk_i32": move_if}[line.mnemonic]


@custom(
    *(f"s_cmpk_{name}_{kind}" for name in _COMPARES for kind in ("i32", "u32")),
    unit=SALU,
    section="SOPK",
    signature="scc : i32 i16",
)
def _compare_constant(line: Instruction, machine: Any) -> Step:
    _, _, name, kind = line.mnemonic.split("_")
    number = int(line.operands[1].value)
    value = np.array([[_signed16(number) if kind == "i32" else number & 0xFFFF]], I32 if kind == "i32" else U32)
    read, compare = reader(line.operands[0], kind), _COMPARES[name]

    def step(group: Group) -> None:
        group.scc = np.asarray(compare(read(group), value))

    return step


_SAVEEXEC: dict[str, Binary] = {
    "and": lambda x, e: x & e,
    "or": lambda x, e: x | e,
    "xor": lambda x, e: x ^ e,
    "andn2": lambda x, e: x & ~e,
    "orn2": lambda x, e: x | ~e,
    "andn1": lambda x, e: ~x & e,
    "orn1": lambda x, e: ~x | e,
}


@custom(
    *(f"s_{name}_saveexec_b64" for name in _SAVEEXEC), unit=SALU, section="SOP1", signature="u64 exec scc : u64"
)
def _save_exec(line: Instruction, machine: Any) -> Step:
    combine = _SAVEEXEC[line.mnemonic.split("_")[1]]
    read, target = reader(line.operands[1], "lanes"), line.operands[0].index

    def step(group: Group) -> None:
        before = group.mask
        after = combine(read(group), before)
        low_high = group.exec64()
        group.put_scalar64(target, low_high)
        group.set_exec(after)
        group.scc = np.asarray(group.mask.any(axis=1, keepdims=True))

    return step


def _signed16(value: int) -> int:
    value &= 0xFFFF
    return value - 0x10000 if value & 0x8000 else value
