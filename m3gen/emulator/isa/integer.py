"""Integer and bit instructions of the vector unit. Sections VOP1, VOP2, VOP3 of the ISA guides."""

from __future__ import annotations

import numpy as np

from m3gen.emulator.group import I32, I64, U32, U64, Array
from m3gen.emulator.isa.scalar import _leading_zeros, _reverse, _sign_bits
from m3gen.emulator.table import VALU, several

_LOW24 = U32(0xFFFFFF)


def wide(x: Array) -> Array:
    return x.astype(I64)


def carry(total: Array) -> tuple[Array, Array]:
    """Of int64 sums: the low word, and the lanes in which it went past either end."""
    return (total & 0xFFFFFFFF).astype(U32), (total > 0xFFFFFFFF) | (total < 0)


def signed24(x: Array) -> Array:
    return ((x & 0xFFFFFF) ^ 0x800000) - 0x800000


def bit_field(x: Array, at: Array, width: Array, *, signed: bool) -> Array:
    n = (width & U32(31)).astype(I64)
    bits = (x.astype(I64) >> (at & U32(31)).astype(I64)) & ((I64(1) << n) - 1)
    if not signed:
        return bits.astype(U32)
    top = I64(1) << np.maximum(n - 1, 0)
    return np.where((n > 0) & (bits & top != 0), bits - (top << 1), bits).astype(I32)


def permute_bytes(high: Array, low: Array, select: Array) -> Array:
    """v_perm_b32: each byte of `select` names a byte of high:low, a sign of one, or a constant."""
    if select.size == 1 and not int(select[0, 0]) & 0xF8F8F8F8:
        return _chosen_bytes(high, low, int(select[0, 0]))
    high, low, select = np.broadcast_arrays(high, low, select)
    both = (high.astype(U64) << U64(32)) | low.astype(U64)
    result = np.zeros(select.shape, U32)
    for byte in range(4):
        s = (select >> U32(8 * byte)) & U32(0xFF)
        found = ((both >> ((s & U32(7)) * U32(8)).astype(U64)) & U64(0xFF)).astype(U32)
        if (s > 7).any():
            odd = ((s & U32(3)) * U32(16) + U32(15)).astype(U64)
            sign = np.where((both >> odd) & U64(1), U32(0xFF), U32(0))
            found = np.where(s <= 7, found, np.where(s <= 11, sign, np.where(s == 12, U32(0), U32(0xFF))))
        result = result | (found << U32(8 * byte))
    return result


def _chosen_bytes(high: Array, low: Array, select: int) -> Array:
    """The same for a constant that only names bytes, as it mostly is."""
    result = np.zeros((1, 1), U32)
    for at in range(0, 32, 8):
        number = select >> at & 7
        source, shift = (high if number > 3 else low), 8 * (number & 3)
        byte = (source >> U32(shift)) & U32(0xFF)
        result = result | (byte << U32(at))
    return result


def subtract_borrow(x: Array, y: Array, borrow: Array | int = 0) -> tuple[Array, Array]:
    return carry(wide(x) - wide(y) - borrow)


several(
    {
        "v_mov_b32": ("u32 : u32", lambda x: x),
        "v_mov_b64": ("u64 : u64", lambda x: x),
        "v_not_b32": ("u32 : u32", lambda x: ~x),
        "v_bfrev_b32": ("u32 : u32", _reverse),
        "v_ffbh_u32": ("i32 : u32", _leading_zeros),
        "v_ffbh_i32": ("i32 : i32", _sign_bits),
        "v_ffbl_b32": (
            "i32 : u32",
            lambda x: np.where(x == 0, I32(-1), np.bitwise_count((x & (~x + U32(1))) - U32(1)).astype(I32)),
        ),
    },
    VALU,
    "VOP1",
)

several(
    {
        "v_add_u32": ("u32 : u32 u32", lambda x, y: x + y),
        "v_sub_u32": ("u32 : u32 u32", lambda x, y: x - y),
        "v_subrev_u32": ("u32 : u32 u32", lambda x, y: y - x),
        "v_add_co_u32": ("u32 lanes : u32 u32", lambda x, y: carry(wide(x) + wide(y))),
        "v_sub_co_u32": ("u32 lanes : u32 u32", lambda x, y: subtract_borrow(x, y)),
        "v_subrev_co_u32": ("u32 lanes : u32 u32", lambda x, y: subtract_borrow(y, x)),
        "v_addc_co_u32": ("u32 lanes : u32 u32 lanes", lambda x, y, c: carry(wide(x) + wide(y) + c)),
        "v_subb_co_u32": ("u32 lanes : u32 u32 lanes", lambda x, y, c: subtract_borrow(x, y, c)),
        "v_subbrev_co_u32": ("u32 lanes : u32 u32 lanes", lambda x, y, c: subtract_borrow(y, x, c)),
        "v_and_b32": ("u32 : u32 u32", lambda x, y: x & y),
        "v_or_b32": ("u32 : u32 u32", lambda x, y: x | y),
        "v_xor_b32": ("u32 : u32 u32", lambda x, y: x ^ y),
        "v_xnor_b32": ("u32 : u32 u32", lambda x, y: ~(x ^ y)),
        "v_lshlrev_b32": ("u32 : u32 u32", lambda n, x: x << (n & U32(31))),
        "v_lshrrev_b32": ("u32 : u32 u32", lambda n, x: x >> (n & U32(31))),
        "v_ashrrev_i32": ("i32 : u32 i32", lambda n, x: x >> (n & U32(31)).view(I32)),
        "v_max_u32": ("u32 : u32 u32", np.maximum),
        "v_min_u32": ("u32 : u32 u32", np.minimum),
        "v_max_i32": ("i32 : i32 i32", np.maximum),
        "v_min_i32": ("i32 : i32 i32", np.minimum),
        "v_mul_u32_u24": ("u32 : u32 u32", lambda x, y: (x & _LOW24) * (y & _LOW24)),
        "v_mul_i32_i24": ("i32 : i32 i32", lambda x, y: signed24(x) * signed24(y)),
        "v_cndmask_b32": ("f32 : f32 f32 lanes", lambda x, y, pick: np.where(pick, y, x)),
        "v_add_u16": ("u16 : u16 u16", lambda x, y: x + y),
        "v_sub_u16": ("u16 : u16 u16", lambda x, y: x - y),
        "v_mul_lo_u16": ("u16 : u16 u16", lambda x, y: x * y),
        "v_max_u16": ("u16 : u16 u16", np.maximum),
        "v_min_u16": ("u16 : u16 u16", np.minimum),
        "v_max_i16": ("i16 : i16 i16", np.maximum),
        "v_min_i16": ("i16 : i16 i16", np.minimum),
        "v_lshlrev_b16": ("u16 : u16 u16", lambda n, x: x << (n & np.uint16(15))),
        "v_lshrrev_b16": ("u16 : u16 u16", lambda n, x: x >> (n & np.uint16(15))),
        "v_ashrrev_i16": ("i16 : u16 i16", lambda n, x: x >> (n & np.uint16(15)).view(np.int16)),
    },
    VALU,
    "VOP2",
)

several(
    {
        "v_add3_u32": ("u32 : u32 u32 u32", lambda x, y, z: x + y + z),
        "v_lshl_add_u32": ("u32 : u32 u32 u32", lambda x, n, y: (x << (n & U32(31))) + y),
        "v_add_lshl_u32": ("u32 : u32 u32 u32", lambda x, y, n: (x + y) << (n & U32(31))),
        "v_lshl_or_b32": ("u32 : u32 u32 u32", lambda x, n, y: (x << (n & U32(31))) | y),
        "v_and_or_b32": ("u32 : u32 u32 u32", lambda x, y, z: (x & y) | z),
        "v_or3_b32": ("u32 : u32 u32 u32", lambda x, y, z: x | y | z),
        "v_xad_u32": ("u32 : u32 u32 u32", lambda x, y, z: (x ^ y) + z),
        "v_bfi_b32": ("u32 : u32 u32 u32", lambda keep, x, y: (keep & x) | (~keep & y)),
        "v_bfe_u32": ("u32 : u32 u32 u32", lambda x, at, n: bit_field(x, at, n, signed=False)),
        "v_bfe_i32": ("i32 : i32 u32 u32", lambda x, at, n: bit_field(x, at, n, signed=True)),
        "v_bfm_b32": ("u32 : u32 u32", lambda n, at: ((U32(1) << (n & U32(31))) - U32(1)) << (at & U32(31))),
        "v_bcnt_u32_b32": ("u32 : u32 u32", lambda x, y: np.bitwise_count(x).astype(U32) + y),
        "v_perm_b32": ("u32 : u32 u32 u32", permute_bytes),
        "v_alignbit_b32": (
            "u32 : u32 u32 u32",
            lambda x, y, n: (((x.astype(U64) << U64(32)) | y.astype(U64)) >> (n & U32(31)).astype(U64)).astype(
                U32
            ),
        ),
        "v_alignbyte_b32": (
            "u32 : u32 u32 u32",
            lambda x, y, n: (
                ((x.astype(U64) << U64(32)) | y.astype(U64)) >> ((n & U32(3)) * U32(8)).astype(U64)
            ).astype(U32),
        ),
        "v_mul_lo_u32": ("u32 : u32 u32", lambda x, y: x * y),
        "v_mul_hi_u32": ("u32 : u32 u32", lambda x, y: ((x.astype(U64) * y.astype(U64)) >> U64(32)).astype(U32)),
        "v_mul_hi_i32": ("i32 : i32 i32", lambda x, y: ((wide(x) * wide(y)) >> I64(32)).astype(I32)),
        "v_mad_u32_u24": ("u32 : u32 u32 u32", lambda x, y, z: (x & _LOW24) * (y & _LOW24) + z),
        "v_mad_i32_i24": ("i32 : i32 i32 i32", lambda x, y, z: signed24(x) * signed24(y) + z),
        "v_mad_u64_u32": ("u64 lanes : u32 u32 u64", lambda x, y, z: _mad64(x, y, z)),
        "v_mad_i64_i32": (
            "i64 lanes : i32 i32 i64",
            lambda x, y, z: _mad64_signed(x, y, z),
        ),
        "v_max3_u32": ("u32 : u32 u32 u32", lambda x, y, z: np.maximum(np.maximum(x, y), z)),
        "v_min3_u32": ("u32 : u32 u32 u32", lambda x, y, z: np.minimum(np.minimum(x, y), z)),
        "v_max3_i32": ("i32 : i32 i32 i32", lambda x, y, z: np.maximum(np.maximum(x, y), z)),
        "v_min3_i32": ("i32 : i32 i32 i32", lambda x, y, z: np.minimum(np.minimum(x, y), z)),
        "v_med3_u32": ("u32 : u32 u32 u32", lambda x, y, z: _median(x, y, z)),
        "v_med3_i32": ("i32 : i32 i32 i32", lambda x, y, z: _median(x, y, z)),
        "v_lshlrev_b64": ("u64 : u32 u64", lambda n, x: x << (n & U32(63)).astype(U64)),
        "v_lshrrev_b64": ("u64 : u32 u64", lambda n, x: x >> (n & U32(63)).astype(U64)),
        "v_ashrrev_i64": ("i64 : u32 i64", lambda n, x: x >> (n & U32(63)).astype(I64)),
        "v_lshl_add_u64": ("u64 : u64 u32 u64", lambda x, n, y: (x << (n & U32(7)).astype(U64)) + y),
        "v_mad_legacy_u16": ("u16 : u16 u16 u16", lambda x, y, z: x * y + z),
        "v_mad_u16": ("u16 : u16 u16 u16", lambda x, y, z: x * y + z),
    },
    VALU,
    "VOP3",
)


def _mad64(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    total = x.astype(U64) * y.astype(U64) + z
    return total, total < z


def _mad64_signed(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """The second result is bit 64 of the sum, its sign where it does not fit."""
    product = wide(x) * wide(y)
    total = product + z
    overflow = ((product ^ total) & (z ^ total)) < 0
    return total, (total < 0) ^ overflow


def _median(x: Array, y: Array, z: Array) -> Array:
    return np.maximum(np.minimum(x, y), np.minimum(np.maximum(x, y), z))


def three_way(table: int, x: Array, y: Array, z: Array) -> Array:
    """Every bit of the result is the bit of `table` that those of x, y and z number, x the highest."""
    result = x ^ x
    for number in range(8):
        if table >> number & 1:
            terms = [one if number & weight else ~one for one, weight in ((x, 4), (y, 2), (z, 1))]
            result = result | (terms[0] & terms[1] & terms[2])
    return result
