"""Two values at once: op_sel and op_sel_hi say which half each source gives to the low and the high result, neg_lo and
neg_hi turn signs, clamp holds both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator import harness
from tests.emulator.isa.numbers import decode, draw, encode, fused, matches, product, rounded, total
from tests.emulator.isa.rows import LANES, Row
from tests.emulator.isa.test_floating import extreme

Formula = Callable[..., Any]
FLOATS: dict[str, Formula] = {"v_pk_add_f32": total, "v_pk_mul_f32": product, "v_pk_fma_f32": fused}
HALVES: dict[str, tuple[str, int, Formula]] = {
    "v_pk_add_f16": ("f16", 2, total),
    "v_pk_mul_f16": ("f16", 2, product),
    "v_pk_fma_f16": ("f16", 3, fused),
    "v_pk_max_f16": ("x16", 2, lambda x, y: extreme("f16", max, x, y)),
    "v_pk_min_f16": ("x16", 2, lambda x, y: extreme("f16", min, x, y)),
    "v_pk_add_u16": ("u16", 2, lambda x, y: x + y),
    "v_pk_sub_u16": ("u16", 2, lambda x, y: x - y),
    "v_pk_add_i16": ("i16", 2, lambda x, y: x + y),
    "v_pk_sub_i16": ("i16", 2, lambda x, y: x - y),
    "v_pk_mul_lo_u16": ("u16", 2, lambda x, y: x * y),
    "v_pk_mad_u16": ("u16", 3, lambda x, y, z: x * y + z),
    "v_pk_max_u16": ("u16", 2, max),
    "v_pk_min_u16": ("u16", 2, min),
    "v_pk_max_i16": ("i16", 2, max),
    "v_pk_min_i16": ("i16", 2, min),
    "v_pk_lshlrev_b16": ("u16", 2, lambda n, x: x << n % 16),
    "v_pk_lshrrev_b16": ("u16", 2, lambda n, x: x >> n % 16),
    "v_pk_ashrrev_i16": ("i16", 2, lambda n, x: x >> n % 16),
}
SATURATING = ("v_pk_add_u16", "v_pk_sub_u16", "v_pk_add_i16", "v_pk_sub_i16", "v_pk_mad_u16")
DOTS = {
    "v_dot2_f32_f16": "gfx942",
    "v_dot2c_f32_f16": "gfx942",
    "v_dot2_f32_bf16": "gfx950",
    "v_dot2c_f32_bf16": "gfx950",
}
ROWS: dict[str, Row] = {}
SPECIAL = {*FLOATS, *HALVES, *DOTS, "v_pk_mov_b32", "v_bitop3_b32", "v_bitop3_b16"}


def flags(random: np.random.Generator, count: int) -> list[int]:
    return [int(x) for x in random.integers(0, 2, count)]


def listed(name: str, values: list[int]) -> str:
    return f" {name}:[{','.join(map(str, values))}]"


def float_line(mnemonic: str, seed: int) -> tuple[str, list[list[int]], list[list[int]]]:
    """A line of packed fp32; op_sel, op_sel_hi, neg_lo, neg_hi; words of the pairs v[2:3], v[4:5], v[6:7]."""
    random = np.random.default_rng(seed)
    count = 3 if "fma" in mnemonic else 2
    modifiers = [flags(random, count) for _ in range(4)]
    names = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
    sources = ", ".join(f"v[{2 + 2 * n}:{3 + 2 * n}]" for n in range(count))
    line = f"{mnemonic} v[0:1], {sources}" + "".join(map(listed, names, modifiers))
    return line, modifiers, [draw("f32", random, LANES) for _ in range(2 * count)]


@pytest.mark.parametrize("mnemonic", FLOATS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=10, deadline=None)
def test_pairs_of_registers(mnemonic: str, seed: int) -> None:
    line, modifiers, words = float_line(mnemonic, seed)
    clamp = seed % 4 == 0
    after = harness.run(line + " clamp" * clamp, {2 + n: column for n, column in enumerate(words)})
    for result in (0, 1):
        picks, negated = modifiers[result], modifiers[2 + result]
        found = after.lanes(result)
        for lane in range(LANES):
            numbers = [decode("f32", words[2 * n + pick][lane]) for n, pick in enumerate(picks)]
            numbers = [-x if minus else x for x, minus in zip(numbers, negated, strict=True)]
            expected = FLOATS[mnemonic](*numbers)
            expected = limited("f32", expected) if clamp else expected
            assert matches("f32", found[lane], expected), (line, lane, numbers)


def limited(kind: str, value: Any) -> Any:
    if kind[0] in "fx":
        value = rounded(f"f{kind[1:]}", value)
        return 0.0 if value != value or value <= 0 else min(value, 1.0)
    low, high = (-32768, 32767) if kind[0] == "i" else (0, 65535)
    return max(low, min(high, value))


def half_line(mnemonic: str, seed: int) -> tuple[str, list[list[int]], list[list[int]], bool]:
    random = np.random.default_rng(seed)
    kind, count, _ = HALVES[mnemonic]
    modifiers = [flags(random, count) for _ in range(4)]
    names = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
    if kind[0] not in "fx":
        modifiers[2:], names = [[0] * count] * 2, names[:2]
    clamp = seed % 4 == 0 and (kind[0] in "fx" or mnemonic in SATURATING)
    sources = ", ".join(f"v{1 + n}" for n in range(count))
    line = f"{mnemonic} v0, {sources}" + "".join(map(listed, names, modifiers)) + " clamp" * clamp
    return (
        line,
        modifiers,
        [draw("2f16" if kind[0] in "fx" else "2u16", random, LANES) for _ in range(count)],
        clamp,
    )


@pytest.mark.parametrize("mnemonic", HALVES)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=10, deadline=None)
def test_pairs_of_halves(mnemonic: str, seed: int) -> None:
    line, modifiers, words, clamp = half_line(mnemonic, seed)
    kind, _, formula = HALVES[mnemonic]
    found = harness.run(line, {1 + n: column for n, column in enumerate(words)}).lanes(0)
    result_kind = kind.replace("x", "f")
    for result in (0, 1):
        picks, negated = modifiers[result], modifiers[2 + result]
        for lane in range(LANES):
            halves = [words[n][lane] >> 16 * pick & 0xFFFF for n, pick in enumerate(picks)]
            halves = [half ^ 0x8000 * minus for half, minus in zip(halves, negated, strict=True)]
            expected = formula(*[decode(kind, half) for half in halves])
            expected = limited(kind, expected) if clamp else expected
            part = found[lane] >> 16 * result & 0xFFFF
            assert matches(result_kind, part, expected), (line, lane, [hex(half) for half in halves], hex(part))


@pytest.mark.parametrize("picks", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_pair_move(picks: tuple[int, int]) -> None:
    """The low result is a register of the first source, the high one a register of the second, whatever the two are
    to the destination."""
    words = {2 + n: list(range(100 * n, 100 * n + LANES)) for n in range(4)}
    for target in (0, 2, 4):
        after = harness.run(
            f"v_pk_mov_b32 v[{target}:{target + 1}], v[2:3], v[4:5]" + listed("op_sel", list(picks)), words
        )
        assert after.lanes(target) == words[2 + picks[0]]
        assert after.lanes(target + 1) == words[4 + picks[1]]


@pytest.mark.parametrize("mnemonic", DOTS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=10, deadline=None)
def test_dot_products(mnemonic: str, seed: int) -> None:
    """Two products and an addend: exact for small integers; else within the roundings of three sums, whose order the
    guides leave open."""
    kind, random = "2" + mnemonic.rpartition("_")[2], np.random.default_rng(seed)
    if seed % 2:
        small = [[float(x) for x in random.integers(-8, 9, LANES)] for _ in range(5)]
    else:
        small = [[float(x) for x in random.standard_normal(LANES)] for _ in range(5)]
    x, y = ([encode(kind, pair) for pair in zip(*two, strict=True)] for two in (small[:2], small[2:4]))
    addend = [encode("f32", value) for value in small[4]]
    target = 0 if "dot2c" in mnemonic else 3
    tail = "" if target == 0 else ", v3"
    found = harness.run(f"{mnemonic} v0, v1, v2{tail}", {1: x, 2: y, target: addend}, arch=DOTS[mnemonic]).lanes(0)
    for lane in range(LANES):
        (a, b), (c, d) = decode(kind, x[lane]), decode(kind, y[lane])
        terms = [a * c, b * d, decode("f32", addend[lane])]
        slack = 0 if seed % 2 else 3 * 2.0**-24 * sum(map(abs, terms))
        assert abs(decode("f32", found[lane]) - math.fsum(terms)) <= slack, terms


@given(seed=st.integers(0, 1 << 30), table=st.integers(0, 255))
@settings(max_examples=20, deadline=None)
def test_three_way_bits(seed: int, table: int) -> None:
    """Bit by bit the entry of a table that the bits of the sources number, the first highest. Of 16 bits, op_sel says
    which halves; what becomes of the other half of the result is open."""
    random = np.random.default_rng(seed)
    words = [draw("u32", random, LANES) for _ in range(3)]
    selects = flags(random, 4)

    def looked_up(sources: list[int], width: int) -> int:
        numbers = [
            4 * (sources[0] >> n & 1) + 2 * (sources[1] >> n & 1) + (sources[2] >> n & 1) for n in range(width)
        ]
        return sum((table >> number & 1) << n for n, number in enumerate(numbers))

    vectors = {1 + n: column for n, column in enumerate(words)}
    found = harness.run(f"v_bitop3_b32 v0, v1, v2, v3 bitop3:{table:#x}", vectors, arch="gfx950").lanes(0)
    line = f"v_bitop3_b16 v0, v1, v2, v3 bitop3:{table:#x}" + listed("op_sel", selects)
    halves = harness.run(line, vectors, arch="gfx950").lanes(0)
    for lane in range(LANES):
        sources = [column[lane] for column in words]
        assert found[lane] == looked_up(sources, 32)
        picked = [source >> 16 * pick & 0xFFFF for source, pick in zip(sources, selects, strict=False)]
        assert halves[lane] >> 16 * selects[3] & 0xFFFF == looked_up(picked, 16), line


def test_a_scalar_source_gives_both_registers_of_its_pair() -> None:
    words = [encode("f32", float(lane)) for lane in range(LANES)]
    scalars = {4: encode("f32", 3.0), 5: encode("f32", 5.0)}
    after = harness.run("v_pk_mul_f32 v[0:1], v[2:3], s[4:5]", {2: words, 3: words}, scalars)
    assert [decode("f32", word) for word in after.lanes(1)] == [5.0 * lane for lane in range(LANES)]
