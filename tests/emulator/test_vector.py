"""Vector instructions lane by lane against arithmetic of Python's own numbers, over edges and random words."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.harness import LANES, run

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
EDGES = [
    0, 1, 2, 3, 5, 15, 16, 23, 24, 31, 32, 33, 63, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFF,
    0x800000, 0xFFFFFF, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
]  # fmt: skip
FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38, -3.4028235e38,
    float("inf"), float("-inf"), 1e10, 16777217.0, 0.1, 2147483648.0, 4294967296.0, -1e-10,
]  # fmt: skip


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def as_float(word: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", word))[0])


def as_word(value: float) -> int:
    """Rounded to fp32 once."""
    return int(np.float32(value).view(np.uint32))


def field(x: int, at: int, width: int) -> int:
    return (x >> (at & 31)) & ((1 << (width & 31)) - 1)


def field_signed(x: int, at: int, width: int) -> int:
    bits = field(signed(x) & M64, at, width)
    return signed(bits, width & 31) if width & 31 else 0


def leading(x: int) -> int:
    return M32 if x == 0 else 32 - x.bit_length()


Formula = Callable[..., int]
ONE: dict[str, Formula] = {
    "v_mov_b32": lambda x: x,
    "v_not_b32": lambda x: ~x,
    "v_bfrev_b32": lambda x: int(f"{x:032b}"[::-1], 2),
    "v_ffbh_u32": leading,
    "v_ffbl_b32": lambda x: M32 if x == 0 else (x & -x).bit_length() - 1,
    "v_cvt_f32_ubyte0": lambda x: as_word(x & 255),
    "v_cvt_f32_ubyte3": lambda x: as_word(x >> 24),
    "v_cvt_f32_i32": lambda x: as_word(signed(x)),
    "v_cvt_f32_u32": lambda x: as_word(x),
}
TWO: dict[str, Formula] = {
    "v_add_u32": lambda x, y: x + y,
    "v_sub_u32": lambda x, y: x - y,
    "v_subrev_u32": lambda x, y: y - x,
    "v_and_b32": lambda x, y: x & y,
    "v_or_b32": lambda x, y: x | y,
    "v_xor_b32": lambda x, y: x ^ y,
    "v_lshlrev_b32": lambda n, x: x << (n & 31),
    "v_lshrrev_b32": lambda n, x: x >> (n & 31),
    "v_ashrrev_i32": lambda n, x: signed(x) >> (n & 31),
    "v_max_u32": max,
    "v_min_u32": min,
    "v_max_i32": lambda x, y: max(signed(x), signed(y)),
    "v_min_i32": lambda x, y: min(signed(x), signed(y)),
    "v_mul_u32_u24": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    "v_mul_i32_i24": lambda x, y: signed(x, 24) * signed(y, 24),
    "v_mul_lo_u32": lambda x, y: x * y,
    "v_mul_hi_u32": lambda x, y: (x * y) >> 32,
    "v_mul_hi_i32": lambda x, y: (signed(x) * signed(y)) >> 32,
    "v_bfm_b32": lambda n, at: ((1 << (n & 31)) - 1) << (at & 31),
    "v_bcnt_u32_b32": lambda x, y: x.bit_count() + y,
    "v_lshlrev_b16": lambda n, x: (x << (n & 15)) & 0xFFFF,
    "v_lshrrev_b16": lambda n, x: (x & 0xFFFF) >> (n & 15),
    "v_add_u16": lambda x, y: (x + y) & 0xFFFF,
    "v_mul_lo_u16": lambda x, y: (x * y) & 0xFFFF,
}
THREE: dict[str, Formula] = {
    "v_add3_u32": lambda x, y, z: x + y + z,
    "v_lshl_add_u32": lambda x, n, y: (x << (n & 31)) + y,
    "v_add_lshl_u32": lambda x, y, n: ((x + y) & M32) << (n & 31),
    "v_lshl_or_b32": lambda x, n, y: (x << (n & 31)) | y,
    "v_and_or_b32": lambda x, y, z: (x & y) | z,
    "v_or3_b32": lambda x, y, z: x | y | z,
    "v_xad_u32": lambda x, y, z: (x ^ y) + z,
    "v_bfi_b32": lambda m, x, y: (m & x) | (~m & y),
    "v_bfe_u32": field,
    "v_bfe_i32": field_signed,
    "v_alignbit_b32": lambda x, y, n: (x << 32 | y) >> (n & 31),
    "v_alignbyte_b32": lambda x, y, n: (x << 32 | y) >> 8 * (n & 3),
    "v_mad_u32_u24": lambda x, y, z: (x & 0xFFFFFF) * (y & 0xFFFFFF) + z,
    "v_mad_i32_i24": lambda x, y, z: signed(x, 24) * signed(y, 24) + z,
    "v_max3_u32": lambda x, y, z: max(x, y, z),
    "v_min3_i32": lambda x, y, z: min(signed(x), signed(y), signed(z)),
    "v_med3_i32": lambda x, y, z: sorted(map(signed, (x, y, z)))[1],
    "v_med3_u32": lambda x, y, z: sorted((x, y, z))[1],
}
INTEGERS = {**{k: (1, v) for k, v in ONE.items()}, **{k: (2, v) for k, v in TWO.items()}}
INTEGERS |= {k: (3, v) for k, v in THREE.items()}


def columns(count: int, values: Sequence[int], seed: int) -> list[list[int]]:
    """Words for `count` sources: the edges against each other, then random ones."""
    rng = np.random.default_rng(seed)
    return [
        [values[(lane * (3 * n + 1) + n) % len(values)] for lane in range(LANES // 2)]
        + [int(word) for word in rng.integers(0, 1 << 32, LANES // 2)]
        for n in range(count)
    ]


@pytest.mark.parametrize("mnemonic", INTEGERS)
@pytest.mark.parametrize("seed", range(3))
def test_integers(mnemonic: str, seed: int) -> None:
    count, formula = INTEGERS[mnemonic]
    sources = columns(count, EDGES, seed)
    names = ", ".join(f"v{n + 1}" for n in range(count))
    found = run(f"{mnemonic} v0, {names}", {n + 1: words for n, words in enumerate(sources)}).lanes(0)
    assert found == [formula(*words) & M32 for words in zip(*sources, strict=True)]


@given(words=st.lists(st.integers(0, M32), min_size=LANES, max_size=LANES), scalar=st.integers(0, M32))
@settings(max_examples=20, deadline=None)
def test_a_scalar_and_a_literal_are_the_same_in_every_lane(words: list[int], scalar: int) -> None:
    found = run("v_xad_u32 v0, v1, s7, 5", {1: words}, {7: scalar}).lanes(0)
    assert found == [((word ^ scalar) + 5) & M32 for word in words]


FLOAT_TWO: dict[str, Callable[[float, float], float]] = {
    "v_add_f32": lambda x, y: float(np.float32(x) + np.float32(y)),
    "v_sub_f32": lambda x, y: float(np.float32(x) - np.float32(y)),
    "v_subrev_f32": lambda x, y: float(np.float32(y) - np.float32(x)),
    "v_mul_f32": lambda x, y: float(np.float32(x) * np.float32(y)),
}


def equal(found: int, value: float) -> bool:
    return math.isnan(as_float(found)) if math.isnan(value) else found == as_word(value)


@pytest.mark.parametrize("mnemonic", FLOAT_TWO)
def test_floats(mnemonic: str) -> None:
    x, y = columns(2, [as_word(value) for value in FLOATS], 0)
    found = run(f"{mnemonic} v0, v1, v2", {1: x, 2: y}).lanes(0)
    with np.errstate(all="ignore"):
        for lane, (a, b) in enumerate(zip(x, y, strict=True)):
            assert equal(found[lane], FLOAT_TWO[mnemonic](as_float(a), as_float(b))), lane


def test_signs_and_magnitudes_of_sources() -> None:
    x, y = columns(2, [as_word(value) for value in FLOATS], 1)
    found = run("v_add_f32 v0, -v1, |v2|", {1: x, 2: y}).lanes(0)
    with np.errstate(all="ignore"):
        for lane, (a, b) in enumerate(zip(x, y, strict=True)):
            assert equal(found[lane], float(np.float32(-as_float(a)) + np.float32(abs(as_float(b)))))


def test_a_select_turns_the_sign_of_a_float() -> None:
    """-v2 of v_cndmask_b32 is a float's sign, not a negative integer."""
    x, y = [as_word(1.5)] * LANES, [as_word(2.0)] * LANES
    found = run("v_cndmask_b32 v0, v1, -v2, s[4:5]", {1: x, 2: y}, {4: 1, 5: 0}).lanes(0)
    assert [as_float(word) for word in found] == [-2.0] + [1.5] * 63


@given(
    st.lists(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=64)
)
@settings(max_examples=60, deadline=None)
def test_fma_rounds_once(triples: list[tuple[float, float, float]]) -> None:
    from fractions import Fraction

    padded = (triples * LANES)[:LANES]
    sources = {n + 1: [as_word(triple[n]) for triple in padded] for n in range(3)}
    found = run("v_fma_f32 v0, v1, v2, v3", sources).lanes(0)
    for lane, (x, y, z) in enumerate(padded):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        assert as_float(found[lane]) == nearest(exact), (x, y, z)


def nearest(exact: object) -> float:
    """The fp32 nearest to a fraction, ties to even."""
    from fractions import Fraction

    assert isinstance(exact, Fraction)
    if exact == 0:
        return 0.0
    guess = np.float32(float(exact)) if abs(exact) < 2**128 else np.float32(math.copysign(np.inf, exact))
    if not np.isfinite(guess):
        largest = Fraction(float(np.finfo(np.float32).max))
        return float(guess) if abs(exact) >= largest + Fraction(2) ** 103 else math.copysign(float(largest), exact)
    options = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    options = [one for one in options if np.isfinite(one)]
    best = min(options, key=lambda one: (abs(Fraction(float(one)) - exact), int(one.view(np.uint32)) & 1))
    return float(best)


def test_max_and_min_leave_out_nan_and_order_zeros() -> None:
    nan, zero, minus = 0x7FC00000, 0, 0x80000000
    x, y = (
        [nan, as_word(2.0), nan, minus, zero] * 12 + [0] * 4,
        [as_word(1.0), nan, nan, zero, minus] * 12 + [0] * 4,
    )
    most, least = (
        run("v_max_f32 v0, v1, v2", {1: x, 2: y}).lanes(0),
        run("v_min_f32 v0, v1, v2", {1: x, 2: y}).lanes(0),
    )
    assert [as_float(word) for word in most[:2]] == [1.0, 2.0]
    assert [as_float(word) for word in least[:2]] == [1.0, 2.0]
    assert math.isnan(as_float(most[2]))
    assert (most[3], most[4], least[3], least[4]) == (zero, zero, minus, minus)


CONVERSIONS: dict[str, Callable[[float], int]] = {
    "v_cvt_i32_f32": lambda x: 0 if math.isnan(x) else max(-(1 << 31), min((1 << 31) - 1, trunc(x))),
    "v_cvt_u32_f32": lambda x: 0 if math.isnan(x) else max(0, min(M32, trunc(x))),
}


def trunc(x: float) -> int:
    return int(math.copysign(1 << 40, x)) if math.isinf(x) else math.trunc(x)


@pytest.mark.parametrize("mnemonic", CONVERSIONS)
def test_to_integers_saturated(mnemonic: str) -> None:
    (x,) = columns(1, [as_word(value) for value in FLOATS], 0)
    found = run(f"{mnemonic} v0, v1", {1: x}).lanes(0)
    assert found == [CONVERSIONS[mnemonic](as_float(word)) & M32 for word in x]


def test_division_of_the_compiler_is_rounded_right() -> None:
    """The sequence of v_div_scale, v_rcp, v_div_fmas and v_div_fixup gives the nearest fp32, denormals included."""
    rng = np.random.default_rng(0)
    text = """
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
    from tests.emulator.harness import Registers, machine

    for scale in (0, 30, -30, -120, 120):
        registers = Registers()
        x = (rng.standard_normal(LANES) * 2.0**scale).astype(np.float32)
        y = (rng.standard_normal(LANES) * 2.0 ** (-scale // 4)).astype(np.float32)
        x[:6] = [0, 1, np.inf, 1e-40, 3e38, -2]
        y[:6] = [1, 0, 2, 3, 1e-3, np.inf]
        registers.vector(1, x.view(np.uint32).tolist())
        registers.vector(2, y.view(np.uint32).tolist())
        with np.errstate(all="ignore"):
            for step in machine(text)._steps:
                step(registers.group)
            expected = x / y
        assert registers.lanes(0) == expected.view(np.uint32).tolist(), scale


def test_lanes_outside_exec_keep_what_they_had() -> None:
    before = list(range(LANES))
    found = run("v_add_u32 v0, 1, v1", {0: before, 1: [100] * LANES}, active=0b1011).lanes(0)
    assert found == [101, 101, 2, 101, *before[4:]]


def test_carries_and_borrows() -> None:
    x, y = columns(2, EDGES, 4)
    after = run("v_add_co_u32 v0, s[4:5], v1, v2", {1: x, 2: y})
    bits = after.word(4) | after.word(5) << 32
    assert after.lanes(0) == [(a + b) & M32 for a, b in zip(x, y, strict=True)]
    assert [bits >> lane & 1 for lane in range(LANES)] == [(a + b) >> 32 for a, b in zip(x, y, strict=True)]
    after = run("v_subb_co_u32 v0, vcc, v1, v2, s[8:9]", {1: x, 2: y}, {8: M32, 9: 0})
    borrow = [1] * 32 + [0] * 32
    totals = [a - b - c for a, b, c in zip(x, y, borrow, strict=True)]
    assert after.lanes(0) == [total & M32 for total in totals]
    bits = after.word(106) | after.word(107) << 32
    assert [bits >> lane & 1 for lane in range(LANES)] == [int(total < 0) for total in totals]


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("lt_i32", lambda x, y: signed(x) < signed(y)),
        ("ge_u32", lambda x, y: x >= y),
        ("ne_u32", lambda x, y: x != y),
        ("gt_f32", lambda x, y: as_float(x) > as_float(y)),
        ("nlt_f32", lambda x, y: not as_float(x) < as_float(y)),
        ("o_f32", lambda x, y: not (math.isnan(as_float(x)) or math.isnan(as_float(y)))),
        ("u_f32", lambda x, y: math.isnan(as_float(x)) or math.isnan(as_float(y))),
        ("neq_f32", lambda x, y: as_float(x) != as_float(y)),
        ("lg_f32", lambda x, y: as_float(x) < as_float(y) or as_float(x) > as_float(y)),
    ],
)
def test_compares_give_a_bit_a_lane_and_none_outside_exec(name: str, formula: Callable[[int, int], bool]) -> None:
    values = [as_word(value) for value in FLOATS] + [0x7FC00000] + EDGES
    x, y = columns(2, values, 2)
    active = 0x0F0F_FFFF_FFFF_FFF3
    after = run(f"v_cmp_{name} vcc, v1, v2", {1: x, 2: y}, active=active)
    bits = after.word(106) | after.word(107) << 32
    expected = sum(int(formula(a, b)) << lane for lane, (a, b) in enumerate(zip(x, y, strict=True)))
    assert bits == expected & active


def test_64_bit() -> None:
    low, high = columns(2, EDGES, 6)
    n = list(range(LANES))
    wide = [a | b << 32 for a, b in zip(low, high, strict=True)]
    after = run("v_lshrrev_b64 v[0:1], v4, v[2:3]", {2: low, 3: high, 4: n})
    assert [a | b << 32 for a, b in zip(after.lanes(0), after.lanes(1), strict=True)] == [
        x >> (k & 63) for x, k in zip(wide, n, strict=True)
    ]
    after = run("v_lshl_add_u64 v[0:1], v[2:3], 3, s[4:5]", {2: low, 3: high}, {4: 7, 5: 1})
    assert [a | b << 32 for a, b in zip(after.lanes(0), after.lanes(1), strict=True)] == [
        ((x << 3) + (7 | 1 << 32)) & M64 for x in wide
    ]
    after = run("v_mad_u64_u32 v[0:1], s[6:7], v4, v2, v[2:3]", {2: low, 3: high, 4: n})
    assert [a | b << 32 for a, b in zip(after.lanes(0), after.lanes(1), strict=True)] == [
        (k * a + x) & M64 for k, a, x in zip(n, low, wide, strict=True)
    ]


def test_bytes_are_permuted() -> None:
    high, low = columns(2, EDGES, 7)
    for select in (0x03020100, 0x07060504, 0x0C0D0105, 0x08090A0B, 0xFF0C0700):
        found = run("v_perm_b32 v0, v1, v2, s3", {1: high, 2: low}, {3: select}).lanes(0)
        for lane, (a, b) in enumerate(zip(high, low, strict=True)):
            bytes_ = (a << 32 | b).to_bytes(8, "little")
            expected = 0
            for n in range(4):
                s = select >> 8 * n & 255
                sign = bytes_[2 * (s - 8) + 1] >> 7 if 8 <= s < 12 else 0
                value = bytes_[s] if s < 8 else 255 * sign if s < 12 else 0 if s == 12 else 255
                expected |= value << 8 * n
            assert found[lane] == expected


def test_three_way_bit_tables() -> None:
    x, y, z = columns(3, EDGES, 8)
    for table in (0x80, 0xFE, 0x96, 0xCA, 0x01):
        found = run(f"v_bitop3_b32 v0, v1, v2, v3 bitop3:{table:#x}", {1: x, 2: y, 3: z}, arch="gfx950").lanes(0)
        for lane, (a, b, c) in enumerate(zip(x, y, z, strict=True)):
            bits = [table >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | (c >> n & 1)) & 1 for n in range(32)]
            assert found[lane] == sum(bit << n for n, bit in enumerate(bits))


def test_packed_floats_take_the_halves_that_op_sel_names() -> None:
    pairs = [[as_word(float(lane + 64 * n)) for lane in range(LANES)] for n in range(6)]
    sources = {2 + n: words for n, words in enumerate(pairs)}
    after = run(
        "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel:[0,1,0] op_sel_hi:[1,1,0] neg_lo:[1,0,0]", sources
    )
    for lane in range(LANES):
        a, b, c, d, e, _ = (as_float(words[lane]) for words in pairs)
        assert as_float(after.lanes(0)[lane]) == -a * d + e
        assert as_float(after.lanes(1)[lane]) == b * d + e
        del c
    after = run("v_pk_mul_f32 v[0:1], v[2:3], s[4:5] op_sel_hi:[1,0]", sources, {4: as_word(3.0), 5: as_word(9.0)})
    assert as_float(after.lanes(1)[5]) == as_float(pairs[1][5]) * 3.0


def test_sdwa_selects_words_and_places_results() -> None:
    x, y = columns(2, EDGES, 9)
    line = "v_or_b32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD"
    assert run(line, {1: x, 2: y}).lanes(0) == [
        (((a & 255) | b) & 0xFFFF) << 16 for a, b in zip(x, y, strict=True)
    ]
    line = (
        "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:BYTE_3"
    )
    assert run(line, {1: x, 2: y}).lanes(0) == [
        (signed(a >> 16, 16) + (b >> 24)) & M32 for a, b in zip(x, y, strict=True)
    ]
