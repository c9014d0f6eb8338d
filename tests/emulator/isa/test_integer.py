"""Integer and bit instructions of the vector unit against Python's integers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.isa.numbers import mask, signed
from tests.emulator.isa.rows import Row, check

VOP = ("e32", "e64", "sdwa")  # VOP1 and VOP2 are also to be had in the long encoding and with sub-dwords
LONG = ("",)  # what is printed without a suffix
M24, M32, M64 = mask(24), mask(32), mask(64)


def one(signature: str, formula, **rest) -> Row:  # type: ignore[no-untyped-def]
    return Row(signature, formula, VOP, **rest)


def field(x: int, at: int, width: int) -> int:
    return x >> (at & 31) & mask(width & 31)


def highest(x: int) -> int:
    """Zeros above the highest bit that is set."""
    return 32 - x.bit_length() if x else -1


def same_as_sign(x: int) -> int:
    text = f"{x & M32:032b}"
    return next((n for n in range(1, 32) if text[n] != text[0]), -1)


def permuted(x: int, y: int, select: int) -> int:
    data = (x << 32 | y).to_bytes(8, "little")
    signs = {8 + n: 255 * (data[2 * n + 1] >> 7) for n in range(4)}
    table = {**dict(enumerate(data)), **signs, 12: 0}
    return int.from_bytes(bytes(table.get(s, 255) for s in select.to_bytes(4, "little")), "little")


def carried(value: int) -> tuple[int, bool]:
    return value, value > M32 or value < 0


def middle(*xs: int) -> int:
    return sorted(xs)[1]


ROWS = {
    "v_mov_b32": one("u32 : u32", lambda x: x),
    "v_mov_b64": Row("u64 : u64", lambda x: x, ("e32", "e64")),
    "v_not_b32": one("u32 : u32", lambda x: M32 - x),
    "v_bfrev_b32": one("u32 : u32", lambda x: int(f"{x:032b}"[::-1], 2)),
    "v_ffbh_u32": one("i32 : u32", highest),
    "v_ffbh_i32": one("i32 : i32", same_as_sign),
    "v_ffbl_b32": one("i32 : u32", lambda x: (x & -x).bit_length() - 1),
    "v_add_u32": one("u32 : u32 u32", lambda x, y: x + y, saturates=True),
    "v_sub_u32": one("u32 : u32 u32", lambda x, y: x - y, saturates=True),
    "v_subrev_u32": one("u32 : u32 u32", lambda x, y: y - x, saturates=True),
    "v_add_co_u32": one("u32 lanes : u32 u32", lambda x, y: carried(x + y)),
    "v_sub_co_u32": one("u32 lanes : u32 u32", lambda x, y: carried(x - y)),
    "v_subrev_co_u32": one("u32 lanes : u32 u32", lambda x, y: carried(y - x)),
    "v_addc_co_u32": one("u32 lanes : u32 u32 lanes", lambda x, y, c: carried(x + y + c)),
    "v_subb_co_u32": one("u32 lanes : u32 u32 lanes", lambda x, y, c: carried(x - y - c)),
    "v_subbrev_co_u32": one("u32 lanes : u32 u32 lanes", lambda x, y, c: carried(y - x - c)),
    "v_and_b32": one("u32 : u32 u32", lambda x, y: x & y),
    "v_or_b32": one("u32 : u32 u32", lambda x, y: x | y),
    "v_xor_b32": one("u32 : u32 u32", lambda x, y: x ^ y),
    "v_xnor_b32": one("u32 : u32 u32", lambda x, y: M32 - (x ^ y)),
    "v_lshlrev_b32": one("u32 : u32 u32", lambda n, x: x << (n % 32)),
    "v_lshrrev_b32": one("u32 : u32 u32", lambda n, x: x >> (n % 32)),
    "v_ashrrev_i32": one("i32 : u32 i32", lambda n, x: x >> (n % 32)),
    "v_max_u32": one("u32 : u32 u32", max),
    "v_min_u32": one("u32 : u32 u32", min),
    "v_max_i32": one("i32 : i32 i32", max),
    "v_min_i32": one("i32 : i32 i32", min),
    "v_mul_u32_u24": one("u32 : u32 u32", lambda x, y: (x & M24) * (y & M24)),
    "v_mul_i32_i24": one("i32 : i32 i32", lambda x, y: signed(x, 24) * signed(y, 24)),
    "v_cndmask_b32": one("x32 : x32 x32 lanes", lambda x, y, pick: y if pick else x),
    "v_add_u16": one("u16 : u16 u16", lambda x, y: x + y, saturates=True),
    "v_sub_u16": one("u16 : u16 u16", lambda x, y: x - y, saturates=True),
    "v_mul_lo_u16": one("u16 : u16 u16", lambda x, y: x * y),
    "v_max_u16": one("u16 : u16 u16", max),
    "v_min_u16": one("u16 : u16 u16", min),
    "v_max_i16": one("i16 : i16 i16", max),
    "v_min_i16": one("i16 : i16 i16", min),
    "v_lshlrev_b16": one("u16 : u16 u16", lambda n, x: x << (n % 16)),
    "v_lshrrev_b16": one("u16 : u16 u16", lambda n, x: x >> (n % 16)),
    "v_ashrrev_i16": one("i16 : u16 i16", lambda n, x: x >> (n % 16)),
    "v_add3_u32": Row("u32 : u32 u32 u32", lambda x, y, z: x + y + z, LONG),
    "v_lshl_add_u32": Row("u32 : u32 u32 u32", lambda x, n, y: (x << (n % 32)) + y, LONG),
    "v_add_lshl_u32": Row("u32 : u32 u32 u32", lambda x, y, n: (x + y) << (n % 32), LONG),
    "v_lshl_or_b32": Row("u32 : u32 u32 u32", lambda x, n, y: x << (n % 32) | y, LONG),
    "v_and_or_b32": Row("u32 : u32 u32 u32", lambda x, y, z: x & y | z, LONG),
    "v_or3_b32": Row("u32 : u32 u32 u32", lambda x, y, z: x | y | z, LONG),
    "v_xad_u32": Row("u32 : u32 u32 u32", lambda x, y, z: (x ^ y) + z, LONG),
    "v_bfi_b32": Row("u32 : u32 u32 u32", lambda pick, x, y: x & pick | y & (M32 - pick), LONG),
    "v_bfe_u32": Row("u32 : u32 u32 u32", field, LONG),
    "v_bfe_i32": Row("i32 : i32 u32 u32", lambda x, at, n: signed(field(x, at, n), n % 32) if n % 32 else 0, LONG),
    "v_bfm_b32": Row("u32 : u32 u32", lambda n, at: mask(n % 32) << (at % 32), LONG),
    "v_bcnt_u32_b32": Row("u32 : u32 u32", lambda x, y: f"{x:b}".count("1") + y, LONG),
    "v_perm_b32": Row("u32 : u32 u32 u32", permuted, LONG, only={2: lambda w: w & 0x0F0F0F0F ^ (w >> 28) * 3}),
    "v_alignbit_b32": Row("u32 : u32 u32 u32", lambda x, y, n: (x << 32 | y) >> (n % 32), LONG),
    "v_alignbyte_b32": Row("u32 : u32 u32 u32", lambda x, y, n: (x << 32 | y) >> (n % 4 * 8), LONG),
    "v_mul_lo_u32": Row("u32 : u32 u32", lambda x, y: x * y, LONG),
    "v_mul_hi_u32": Row("u32 : u32 u32", lambda x, y: x * y // (1 << 32), LONG),
    "v_mul_hi_i32": Row("i32 : i32 i32", lambda x, y: x * y // (1 << 32), LONG),
    "v_mad_u32_u24": Row("u32 : u32 u32 u32", lambda x, y, z: (x & M24) * (y & M24) + z, LONG),
    "v_mad_i32_i24": Row("i32 : i32 i32 i32", lambda x, y, z: signed(x, 24) * signed(y, 24) + z, LONG),
    "v_mad_u64_u32": Row("u64 lanes : u32 u32 u64", lambda x, y, z: (x * y + z, x * y + z > M64), LONG),
    "v_mad_i64_i32": Row("i64 lanes : i32 i32 i64", lambda x, y, z: (x * y + z, x * y + z < 0), LONG),
    "v_max3_u32": Row("u32 : u32 u32 u32", max, LONG),
    "v_min3_u32": Row("u32 : u32 u32 u32", min, LONG),
    "v_max3_i32": Row("i32 : i32 i32 i32", max, LONG),
    "v_min3_i32": Row("i32 : i32 i32 i32", min, LONG),
    "v_med3_u32": Row("u32 : u32 u32 u32", middle, LONG),
    "v_med3_i32": Row("i32 : i32 i32 i32", middle, LONG),
    "v_lshlrev_b64": Row("u64 : u32 u64", lambda n, x: x << (n % 64), LONG),
    "v_lshrrev_b64": Row("u64 : u32 u64", lambda n, x: x >> (n % 64), LONG),
    "v_ashrrev_i64": Row("i64 : u32 i64", lambda n, x: x >> (n % 64), LONG),
    "v_lshl_add_u64": Row(
        "u64 : u64 u32 u64", lambda x, n, y: (x << (n % 8)) + y, LONG, only={1: lambda n: n % 5}
    ),
    "v_mad_legacy_u16": Row("u16 : u16 u16 u16", lambda x, y, z: x * y + z, LONG),
    "v_mad_u16": Row("u16 : u16 u16 u16", lambda x, y, z: x * y + z, LONG, op_sel=True, keeps_half=True),
}
FORMS = [(mnemonic, form) for mnemonic, row in ROWS.items() for form in row.forms]


@pytest.mark.parametrize(("mnemonic", "form"), FORMS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=5, deadline=None)
def test_a_line_gives_what_its_formula_says(mnemonic: str, form: str, seed: int) -> None:
    check(mnemonic, ROWS[mnemonic], form, seed)
