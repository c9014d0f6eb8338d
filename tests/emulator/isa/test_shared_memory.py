"""The LDS: reads, writes, exchanges between lanes and atomics, against what they mean byte by byte, lane by lane."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.emulator.faults import MemoryFault, UnknownInstruction
from tests.emulator.harness import LANES, machine
from tests.emulator.isa.memories import ALL, M32, MASKS, QUICK, SEEDS, Wave, of_module, parts, span, whole

SIZE = 1 << 15
WIDE = {"b32": 4, "b64": 8, "b96": 12, "b128": 16}


def extended(value: int, bits: int, to: int) -> int:
    """Two's complement of `bits` as one of `to`."""
    return (value - (value >> (bits - 1) << bits)) & ((1 << to) - 1)


# What becomes of a register that held `old` when bytes of this value are read.
SMALL_READS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "u8": (1, lambda value, old: value),
    "i8": (1, lambda value, old: extended(value, 8, 32)),
    "u16": (2, lambda value, old: value),
    "i16": (2, lambda value, old: extended(value, 16, 32)),
    "u8_d16": (1, lambda value, old: old & 0xFFFF0000 | value),
    "u8_d16_hi": (1, lambda value, old: value << 16 | old & 0xFFFF),
    "i8_d16": (1, lambda value, old: old & 0xFFFF0000 | extended(value, 8, 16)),
    "i8_d16_hi": (1, lambda value, old: extended(value, 8, 16) << 16 | old & 0xFFFF),
    "u16_d16": (2, lambda value, old: old & 0xFFFF0000 | value),
    "u16_d16_hi": (2, lambda value, old: value << 16 | old & 0xFFFF),
}
# Bytes, and the bits of the register from which on they are written.
WRITES = {name: (size, 0) for name, size in WIDE.items()} | {
    "b8": (1, 0),
    "b16": (2, 0),
    "b8_d16_hi": (1, 16),
    "b16_d16_hi": (2, 16),
}
# Bytes of each of the two, and of what an offset counts.
PAIRS = {"2_b32": (4, 4), "2_b64": (8, 8), "2st64_b32": (4, 256), "2st64_b64": (8, 512)}


def made(seed: int, active: int, most: int = SIZE) -> tuple[Wave, random.Random]:
    rng = random.Random(seed)
    return Wave(rng, active, lds=most), rng


def addresses(wave: Wave, rng: random.Random, size: int, reach: int, step: int = 0) -> tuple[list[int], int]:
    """Base addresses in v8, some of them below zero by what the offset adds; the offset."""
    step = step or rng.choice([1, size])
    offset = rng.choice([0, 16, 240]) if reach else 0
    places = [rng.randrange(0, SIZE - size - reach - 256) // step * step for _ in range(LANES)]
    wave.vector(8, [(one - offset) & M32 for one in places])
    return places, offset


@pytest.mark.parametrize("name", [*WIDE, *SMALL_READS])
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_reads(name: str, seed: int, active: int) -> None:
    wave, rng = made(seed, active)
    size = WIDE.get(name) or SMALL_READS[name][0]
    places, offset = addresses(wave, rng, size, 1)
    bank, first = rng.choice([("v", 0), ("a", 256)])
    for n in range(4):
        wave.vector(first + n, wave.words())
    before, count = [wave.lanes(first + n) for n in range(4)], max(1, size // 4)
    wave.run(f"ds_read_{name} {span(bank, 0, count)}, v8 offset:{offset}")
    for lane in range(LANES):
        old = [words[lane] for words in before]
        expected = list(old)
        if wave.is_active(lane):
            value = int.from_bytes(wave.lds_bytes[places[lane] : places[lane] + size], "little")
            if name in SMALL_READS:
                expected[0] = SMALL_READS[name][1](value, old[0])
            else:
                expected[:count] = parts(value, count)
        assert [wave.lanes(first + n)[lane] for n in range(4)] == expected, lane


@pytest.mark.parametrize("name", WRITES)
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_writes(name: str, seed: int, active: int) -> None:
    size, shift = WRITES[name]
    wave, rng = made(seed, active)
    places, offset = addresses(wave, rng, size, 1)
    image = bytearray(wave.lds_bytes)
    for lane in filter(wave.is_active, range(LANES)):
        value = whole([wave.lanes(n)[lane] for n in range(4)]) >> shift & (1 << 8 * size) - 1
        image[places[lane] : places[lane] + size] = value.to_bytes(size, "little")
    wave.run(f"ds_write_{name} v8, {span('v', 0, max(1, size // 4))} offset:{offset}")
    assert wave.lds_bytes == bytes(image)


@pytest.mark.parametrize("name", PAIRS)
@QUICK
@given(seed=SEEDS, active=MASKS, first=st.integers(0, 20), second=st.integers(0, 20))
def test_pairs(name: str, seed: int, active: int, first: int, second: int) -> None:
    """Two places at once, their offsets in units of what is read, or of 64 of these."""
    size, unit = PAIRS[name]
    wave, rng = made(seed, active)
    places = [rng.randrange(0, SIZE - 21 * 512) // size * size for _ in range(LANES)]
    wave.vector(8, places)
    before, count = [wave.lanes(n) for n in range(4)], 2 * size // 4
    image = bytearray(wave.lds_bytes)
    wave.run(f"ds_read{name} {span('v', 0, count)}, v8 offset0:{first} offset1:{second}")
    for lane in range(LANES):
        both = [image[places[lane] + unit * n : places[lane] + unit * n + size] for n in (first, second)]
        expected = parts(int.from_bytes(b"".join(both), "little"), count)
        expected = expected if wave.is_active(lane) else [words[lane] for words in before[:count]]
        assert [wave.lanes(n)[lane] for n in range(count)] == expected, lane
    data = [span("v", 0, size // 4), span("v", 4, size // 4)]
    for number, offset in enumerate((first, second)):
        for lane in filter(wave.is_active, range(LANES)):
            value = whole([wave.lanes(4 * number + n)[lane] for n in range(size // 4)])
            at = places[lane] + unit * offset
            image[at : at + size] = value.to_bytes(size, "little")
    wave.run(f"ds_write{name} v8, {data[0]}, {data[1]} offset0:{first} offset1:{second}")
    assert wave.lds_bytes == bytes(image)


@pytest.mark.parametrize("line", ["ds_read_b64 v[0:1], v8 offset:8", "ds_write_b64 v8, v[0:1] offset:8"])
def test_what_is_outside_is_a_fault(line: str) -> None:
    wave, _ = made(0, 1 << 5, 64)
    wave.vector(8, [49] * LANES)
    with pytest.raises(MemoryFault, match=r"8 bytes at 57 of the LDS, which has 64 bytes, lane 5 of wave 0"):
        wave.run(line)


@dataclass(frozen=True)
class Transposed:
    """Each 16 lanes see 16 pieces as a matrix of `bits` wide elements with 16 columns, row by row; lane number n of
    them gets column n."""

    bits: int
    piece: int  # bytes of a lane


TRANSPOSED = {"ds_read_b64_tr_b16": Transposed(16, 8), "ds_read_b64_tr_b8": Transposed(8, 8)}


@pytest.mark.parametrize("mnemonic", TRANSPOSED)
@QUICK
@given(seed=SEEDS)
def test_transposed_reads(mnemonic: str, seed: int) -> None:
    """That this is what the hardware does is what `test_kernels` says, where Triton loads operands so. Once what was
    for accumulation registers went into vector registers."""
    one = TRANSPOSED[mnemonic]
    wave, rng = made(seed, ALL)
    places, offset = addresses(wave, rng, one.piece, 1, step=one.piece)
    bank, first = rng.choice([("v", 0), ("a", 256)])
    others = [wave.lanes(256 - first + n) for n in range(2)]
    wave.run(f"{mnemonic} {span(bank, 0, one.piece // 4)}, v8 offset:{offset}")
    assert [wave.lanes(256 - first + n) for n in range(2)] == others
    for lane in range(LANES):
        group = range(lane - lane % 16, lane - lane % 16 + 16)
        flat = int.from_bytes(b"".join(wave.lds_bytes[places[n] : places[n] + one.piece] for n in group), "little")
        rows = one.piece * 8 // one.bits
        column = [flat >> one.bits * (16 * row + lane % 16) & (1 << one.bits) - 1 for row in range(rows)]
        expected = sum(element << one.bits * row for row, element in enumerate(column))
        assert whole([wave.lanes(first + n)[lane] for n in range(one.piece // 4)]) == expected, lane


@pytest.mark.parametrize("mnemonic", ["ds_bpermute_b32", "ds_permute_b32"])
@QUICK
@given(seed=SEEDS, active=MASKS, offset=st.sampled_from([0, 4, 60]))
def test_permutations(mnemonic: str, seed: int, active: int, offset: int) -> None:
    """Lanes are named by four times their number, modulo 64; those outside EXEC give nothing, and where several lanes
    push to one the last one does."""
    wave, rng = made(seed, active)
    wave.vector(8, [rng.choice([rng.getrandbits(32), 4 * rng.randrange(64)]) for _ in range(LANES)])
    bank, first = rng.choice([("v", 0), ("a", 256)])
    before, values = wave.lanes(first), wave.lanes(first + 1)
    named = [(one + offset) // 4 % 64 for one in wave.lanes(8)]
    wave.run(f"{mnemonic} {bank}0, v8, {bank}1 offset:{offset}")
    pushed = [0] * LANES
    for lane in filter(wave.is_active, range(LANES)):
        pushed[named[lane]] = values[lane]
    pulled = [values[named[lane]] if wave.is_active(named[lane]) else 0 for lane in range(LANES)]
    found = pulled if mnemonic == "ds_bpermute_b32" else pushed
    assert wave.lanes(first) == [found[lane] if wave.is_active(lane) else before[lane] for lane in range(LANES)]


# The lane that a lane reads; LLVM prints these names instead of numbers.
SWIZZLES: dict[str, Callable[[int], int]] = {
    "swizzle(SWAP,16)": lambda lane: lane ^ 16,
    "swizzle(SWAP,1)": lambda lane: lane ^ 1,
    "swizzle(REVERSE,8)": lambda lane: lane ^ 7,
    "swizzle(BROADCAST,8,3)": lambda lane: lane - lane % 8 + 3,
    "swizzle(QUAD_PERM,2,1,3,0)": lambda lane: lane - lane % 4 + (2, 1, 3, 0)[lane % 4],
    'swizzle(BITMASK_PERM,"01pip")': lambda lane: lane & 0b100101 | 0b01000 | ~lane & 0b00010,
    "0x401f": lambda lane: lane ^ 16,
    "0x801b": lambda lane: lane ^ 3,
    "0": lambda lane: lane & 32,
}


@pytest.mark.parametrize("offset", SWIZZLES)
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_swizzles(offset: str, seed: int, active: int) -> None:
    wave, _ = made(seed, active)
    before, values = wave.lanes(0), wave.lanes(1)
    wave.run(f"ds_swizzle_b32 v0, v1 offset:{offset}")

    def found(lane: int) -> int:
        at = SWIZZLES[offset](lane)
        return values[at] if wave.is_active(at) else 0

    assert wave.lanes(0) == [found(lane) if wave.is_active(lane) else before[lane] for lane in range(LANES)]


@pytest.mark.parametrize("offset", ["0xc020", "0xe000", "swizzle(ROTATE,0,1)", "swizzle(SWAP,3)"])
def test_swizzles_that_are_not_known_are_refused(offset: str) -> None:
    with pytest.raises(UnknownInstruction, match=r"swizzle.*, line 2"):
        machine(f"ds_swizzle_b32 v0, v1 offset:{offset}")


ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add_u32": lambda x, y: (x + y) & M32,
    "sub_u32": lambda x, y: (x - y) & M32,
    "max_u32": lambda x, y: x if x > y else y,
    "min_u32": lambda x, y: x if x < y else y,
    "or_b32": lambda x, y: x | y,
    "and_b32": lambda x, y: x & y,
    "xor_b32": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("name", ATOMICS)
@QUICK
@given(seed=SEEDS, active=MASKS, returns=st.booleans())
def test_atomics(name: str, seed: int, active: int, returns: bool) -> None:
    """Lane after lane, several of them at one address."""
    wave, rng = made(seed, active)
    few = [4 * rng.randrange(1000) for _ in range(3)]
    places = [rng.choice(few) for _ in range(LANES)]
    offset = rng.choice([0, 8])
    wave.vector(8, [(one - offset) & M32 for one in places])
    image, values, expected = bytearray(wave.lds_bytes), wave.lanes(1), wave.lanes(0)
    for lane in filter(wave.is_active, range(LANES)):
        at = places[lane]
        old = int.from_bytes(image[at : at + 4], "little")
        image[at : at + 4] = ATOMICS[name](old, values[lane]).to_bytes(4, "little")
        if returns:
            expected[lane] = old
    kind, _, width = name.partition("_")
    mnemonic, target = (f"ds_{kind}_rtn_{width}", "v0, ") if returns else (f"ds_{name}", "")
    wave.run(f"{mnemonic} {target}v8, v1 offset:{offset}")
    assert wave.lds_bytes == bytes(image)
    assert wave.lanes(0) == expected


def test_every_mnemonic_is_here() -> None:
    tested = {f"ds_read_{name}" for name in (*WIDE, *SMALL_READS)} | {f"ds_write_{name}" for name in WRITES}
    tested |= {f"ds_{way}{name}" for way in ("read", "write") for name in PAIRS} | set(TRANSPOSED)
    tested |= {"ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32"}
    tested |= {f"ds_{name}" for name in ATOMICS} | {f"ds_{name.replace('_', '_rtn_')}" for name in ATOMICS}
    assert of_module("shared_memory") == tested
