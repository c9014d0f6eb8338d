"""Scalar loads, buffer, global, flat and scratch accesses, copies into the LDS and atomics, against what they mean
byte by byte, lane by lane."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.emulator.faults import UnknownInstruction
from tests.emulator.harness import LANES, machine
from tests.emulator.isa.memories import ALL, M32, MASKS, QUICK, SEEDS, Wave, of_module, parts, span, whole

SIZE, SCRATCH = 2048, 1024  # bytes of memory, and for each lane
KINDS = ("buffer", "global", "flat", "scratch")
WIDE = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
SCALAR = {**{name: size for name, size in WIDE.items() if size != 12}, "dwordx8": 32, "dwordx16": 64}


def extended(value: int, bits: int, to: int) -> int:
    """Two's complement of `bits` as one of `to`."""
    return (value - (value >> (bits - 1) << bits)) & ((1 << to) - 1)


# What becomes of a register that held `old` when bytes of this value are loaded.
SMALL_LOADS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "ubyte": (1, lambda value, old: value),
    "sbyte": (1, lambda value, old: extended(value, 8, 32)),
    "ushort": (2, lambda value, old: value),
    "sshort": (2, lambda value, old: extended(value, 16, 32)),
    "ubyte_d16": (1, lambda value, old: old & 0xFFFF0000 | value),
    "ubyte_d16_hi": (1, lambda value, old: value << 16 | old & 0xFFFF),
    "sbyte_d16": (1, lambda value, old: old & 0xFFFF0000 | extended(value, 8, 16)),
    "sbyte_d16_hi": (1, lambda value, old: extended(value, 8, 16) << 16 | old & 0xFFFF),
    "short_d16": (2, lambda value, old: old & 0xFFFF0000 | value),
    "short_d16_hi": (2, lambda value, old: value << 16 | old & 0xFFFF),
}
# Bytes, and the bits of the register from which on they are stored.
STORES = {name: (size, 0) for name, size in WIDE.items()} | {
    "byte": (1, 0),
    "short": (2, 0),
    "byte_d16_hi": (1, 16),
    "short_d16_hi": (2, 16),
}


@dataclass(frozen=True)
class Place:
    """Operands that follow the data, modifiers, and where each lane's access of some bytes lands: an index into
    memory. `records` bytes of it are accessible."""

    before: str  # the data operand of a store
    after: str
    modifiers: str
    at: list[int]
    records: int = 1 << 40


def placed(wave: Wave, kind: str, size: int, draw: random.Random, apart: bool = False) -> Place:
    """Random addresses within memory, spelled in one of the ways that the kind has; with `apart` those of two lanes
    are equal or do not overlap."""
    step = size if apart else draw.choice([1, 1, size])
    immediate = draw.choice([0, 4, 17, 255]) // step * step
    room = (SCRATCH if kind == "scratch" else SIZE) - size - 600
    at = [draw.randrange(0, room) // step * step for _ in range(LANES)]
    if kind == "scratch":
        scalar = draw.choice([0, 16])
        wave.scalar(8, scalar)
        wave.vector(8, at)
        if draw.random() < 0.3:
            return Place("off", "s8", f"offset:{immediate % 64}", [scalar + immediate % 64] * LANES)
        found = [one + immediate for one in at]
        return Place("v8", "off", f"offset:{immediate}", found)
    if kind == "buffer":
        scalar, records = draw.choice([0, 32]), draw.choice([SIZE, SIZE // 2, 37, 0])
        wave.wide_scalar(4, wave.start | 0xABCD << 48)  # stride and swizzle bits are no part of the base
        wave.scalar(6, records)
        wave.scalar(7, 0x27000)
        wave.scalar(8, scalar)
        wave.vector(8, [0x80000000 if draw.random() < 0.1 else one for one in at])  # how compilers mask a lane
        if draw.random() < 0.2:
            return Place("", "off, s[4:7], s8", f"offset:{immediate}", [scalar + immediate] * LANES, records)
        found = [one + scalar + immediate for one in wave.lanes(8)]
        return Place("", "v8, s[4:7], s8", f"offen offset:{immediate}", found, records)
    immediate = draw.choice([immediate, -immediate])
    at = [one + 300 for one in at]
    found = [one + immediate for one in at]
    if kind == "global" and draw.random() < 0.5:
        wave.wide_scalar(4, wave.start)
        wave.vector(8, at)
        return Place("v8", "s[4:5]", f"offset:{immediate}", found)
    wave.wide(8, [wave.start + one for one in at])
    return Place("v[8:9]", "off" if kind == "global" else "", f"offset:{immediate}", found)


def made(seed: int, active: int, **spaces: int) -> tuple[Wave, random.Random]:
    rng = random.Random(seed)
    return Wave(rng, active, **spaces), rng


def joined(*operands: str) -> str:
    return ", ".join(one for one in operands if one)


def memory_of(wave: Wave, kind: str, lane: int) -> bytes:
    if kind != "scratch":
        return wave.bytes_.tobytes()
    assert wave.group.scratch is not None
    found: bytes = wave.group.scratch[0, lane].tobytes()
    return found


def read(image: bytes, place: Place, lane: int, size: int) -> int:
    """Bytes of a lane as a number; words past the records are 0."""
    at, value = place.at[lane], 0
    unit = min(size, 4)
    for n in range(0, size, unit):
        if at + n + unit <= place.records:
            value |= int.from_bytes(image[at + n : at + n + unit], "little") << 8 * n
    return value


@pytest.mark.parametrize("name", [*WIDE, *SMALL_LOADS])
@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_loads(kind: str, name: str, seed: int, active: int) -> None:
    size = WIDE.get(name) or SMALL_LOADS[name][0]
    wave, draw = made(seed, active, memory=SIZE, scratch=SCRATCH)
    place, count = placed(wave, kind, size, draw), max(1, size // 4)
    bank, first = draw.choice([("v", 0), ("a", 256)])
    for n in range(4):
        wave.vector(first + n, wave.words())
    before = [wave.lanes(first + n) for n in range(4)]
    operands = joined(span(bank, 0, count), place.before, place.after)
    wave.run(f"{kind}_load_{name} {operands} {place.modifiers}")
    for lane in range(LANES):
        old = [words[lane] for words in before]
        expected = list(old)
        if wave.is_active(lane):
            value = read(memory_of(wave, kind, lane), place, lane, size)
            if name in SMALL_LOADS:
                expected[0] = SMALL_LOADS[name][1](value, old[0])
            else:
                expected[:count] = parts(value, count)
        assert [wave.lanes(first + n)[lane] for n in range(4)] == expected, lane


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_stores(kind: str, name: str, seed: int, active: int) -> None:
    """Lanes that store to one place do so in order."""
    size, shift = STORES[name]
    wave, draw = made(seed, active, memory=SIZE, scratch=SCRATCH)
    place = placed(wave, kind, size, draw, apart=True)
    images = [bytearray(memory_of(wave, kind, lane)) for lane in range(LANES if kind == "scratch" else 1)]
    for lane in filter(wave.is_active, range(LANES)):
        value = whole([wave.lanes(n)[lane] for n in range(4)]) >> shift
        image, at, unit = images[lane if kind == "scratch" else 0], place.at[lane], min(size, 4)
        for n in range(0, size, unit):
            if at + n + unit <= place.records:
                image[at + n : at + n + unit] = (value >> 8 * n & (1 << 8 * unit) - 1).to_bytes(unit, "little")
    data = span("v", 0, max(1, size // 4))
    operands = joined(data, place.after) if kind == "buffer" else joined(place.before, data, place.after)
    wave.run(f"{kind}_store_{name} {operands} {place.modifiers}")
    for lane, image in enumerate(images):
        assert memory_of(wave, kind, lane) == bytes(image), lane


def test_a_word_that_straddles_the_end_of_a_buffer_is_outside_and_those_before_it_are_inside() -> None:
    wave, _ = made(0, ALL, memory=64)
    wave.wide_scalar(4, wave.start)
    wave.scalar(6, 14)
    wave.vector(8, [0] * LANES)
    first = int.from_bytes(wave.bytes_[:12].tobytes(), "little")
    wave.run("buffer_load_dwordx4 v[0:3], v8, s[4:7], 0 offen")
    assert [wave.lanes(n)[5] for n in range(4)] == [*parts(first, 3), 0]
    after = wave.bytes_[12:].tobytes()
    wave.run("buffer_store_dwordx4 v[4:7], v8, s[4:7], 0 offen")
    assert wave.bytes_[12:].tobytes() == after
    assert wave.bytes_[8:12].tobytes() == wave.lanes(6)[63].to_bytes(4, "little")


@pytest.mark.parametrize("name", SCALAR)
@QUICK
@given(seed=SEEDS, in_register=st.booleans(), in_buffer=st.booleans())
def test_scalar_loads(name: str, seed: int, in_register: bool, in_buffer: bool) -> None:
    """The two lowest bits of an address do not count, an offset in a register is unsigned."""
    wave, draw = made(seed, ALL, memory=SIZE)
    size, offset = SCALAR[name], draw.randrange(0, 1024)
    records = draw.choice([SIZE, 1024, 700, 0])
    wave.wide_scalar(4, wave.start + (0 if in_buffer else 512) | (0x1234 << 48 if in_buffer else 0))
    wave.scalar(6, records)
    spelled = f"{offset:#x}"
    if in_register:
        wave.scalar(9, offset)
        spelled = "s9"
    elif not in_buffer and draw.random() < 0.5:
        spelled, offset = f"-{offset // 2:#x}", -(offset // 2)
    base = "s[4:7]" if in_buffer else "s[4:5]"
    wave.run(f"s_{'buffer_' if in_buffer else ''}load_{name} {span('s', 32, size // 4)}, {base}, {spelled}")
    at = (offset if in_buffer else 512 + offset) & ~3
    for n in range(size // 4):
        inside = not in_buffer or at + 4 * n + 4 <= records
        expected = int.from_bytes(wave.bytes_[at + 4 * n : at + 4 * n + 4].tobytes(), "little") if inside else 0
        assert wave.word(32 + n) == expected, n


def test_a_scalar_offset_in_a_register_is_unsigned() -> None:
    wave, _ = made(0, ALL, memory=64)
    wave.wide_scalar(4, wave.start + 16 - 0xFFFFFFF0)
    wave.scalar(9, 0xFFFFFFF0)
    wave.run("s_load_dword s20, s[4:5], s9")
    assert wave.word(20) == int.from_bytes(wave.bytes_[16:20].tobytes(), "little")


LDS_COPIES = {
    **{f"global_load_lds_{name}": size for name, size in WIDE.items() if size != 8},
    **{f"buffer_load_{name}": size for name, size in WIDE.items() if size != 8},
}


@pytest.mark.parametrize("mnemonic", LDS_COPIES)
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_copies_into_the_lds(mnemonic: str, seed: int, active: int) -> None:
    """A lane's words go to M0 + offset + lane * size; words past the end of a buffer are zeros there too."""
    kind, size = mnemonic.partition("_")[0], LDS_COPIES[mnemonic]
    wave, draw = made(seed, active, memory=SIZE, lds=4096)
    place = placed(wave, kind, size, draw)
    offset = int(place.modifiers.rpartition(":")[2])
    start = 16 * draw.randrange(20, 60)
    wave.scalar(124, start)
    image = bytearray(wave.lds_bytes)
    for lane in filter(wave.is_active, range(LANES)):
        at = start + offset + lane * size
        image[at : at + size] = read(wave.bytes_.tobytes(), place, lane, size).to_bytes(size, "little")
    before = [wave.lanes(n) for n in range(16)]
    flag = "" if kind == "global" else " lds"
    wave.run(f"{mnemonic} {joined(place.before, place.after)} {place.modifiers}{flag}")
    assert wave.lds_bytes == bytes(image)
    assert [wave.lanes(n) for n in range(16)] == before


@pytest.mark.parametrize(
    "line", ["buffer_load_ubyte v8, s[4:7], 0 offen lds", "buffer_load_dword v0, v8, s[4:7], 0 idxen"]
)
def test_what_is_not_known_is_refused(line: str) -> None:
    with pytest.raises(UnknownInstruction, match="not known, line 2"):
        machine(line)


def two(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


def added(x: int, y: int) -> int:
    a, b = (struct.unpack("<f", struct.pack("<I", one))[0] for one in (x, y))
    found: int = struct.unpack("<I", struct.pack("<f", a + b))[0]
    return found


# What is in memory afterwards; x was there, y is given, of `bits` each.
ATOMICS: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda x, y, bits: y,
    "add": lambda x, y, bits: (x + y) % (1 << bits),
    "sub": lambda x, y, bits: (x - y) % (1 << bits),
    "umax": lambda x, y, bits: x if x > y else y,
    "umin": lambda x, y, bits: x if x < y else y,
    "smax": lambda x, y, bits: x if two(x, bits) > two(y, bits) else y,
    "smin": lambda x, y, bits: x if two(x, bits) < two(y, bits) else y,
    "and": lambda x, y, bits: x & y,
    "or": lambda x, y, bits: x | y,
    "xor": lambda x, y, bits: x ^ y,
    "inc": lambda x, y, bits: 0 if x >= y else x + 1,
    "dec": lambda x, y, bits: y if x == 0 or x > y else x - 1,
    "add_f32": lambda x, y, bits: added(x, y),
}
ATOMIC_NAMES = [
    name + wide for name in [*ATOMICS, "cmpswap"] for wide in ("", "_x2") if name + wide != "add_f32_x2"
]


@pytest.mark.parametrize("name", ATOMIC_NAMES)
@pytest.mark.parametrize("kind", ["buffer", "global", "flat"])
@QUICK
@given(seed=SEEDS, active=MASKS, returns=st.booleans(), edges=st.booleans())
def test_atomics(kind: str, name: str, seed: int, active: int, returns: bool, edges: bool) -> None:
    """Lane after lane, several of them at one address; with sc0 what was there comes back."""
    wave, draw = made(seed, active, memory=SIZE)
    bits = 64 if name.endswith("_x2") else 32
    bare, count, size = name.removesuffix("_x2"), bits // 32, bits // 8
    place = placed(wave, kind, size, draw)
    shared = [place.at[draw.randrange(4)] for _ in range(LANES)]  # few addresses
    delta = [new - old for new, old in zip(shared, place.at, strict=True)]
    if "off," in place.after:
        shared = place.at  # all lanes at one address
    elif place.before == "v[8:9]":
        old = [whole([wave.lanes(8)[lane], wave.lanes(9)[lane]]) for lane in range(LANES)]
        wave.wide(8, [at + d for at, d in zip(old, delta, strict=True)])
    else:
        wave.vector(8, [at + d & M32 for at, d in zip(wave.lanes(8), delta, strict=True)])
    corner = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
    if bare == "add_f32":
        corner = [0, 0x3F800000, 0xBF800000, 0x40490FDB]
    image = wave.bytes_
    for at in set(shared):
        if edges or bare == "add_f32":
            image[at : at + size] = list(draw.choice(corner).to_bytes(size, "little"))[
                : len(image[at : at + size])
            ]
    model = bytearray(image.tobytes())
    new = [draw.choice(corner) if edges or bare == "add_f32" else draw.getrandbits(bits) for _ in range(LANES)]
    there = [int.from_bytes(model[at : at + size], "little") for at in shared]
    compare = [draw.choice([one, draw.choice(corner)]) for one in there]
    for n in range(count):
        wave.vector(n, [one >> 32 * n & M32 for one in new])
        wave.vector(count + n, [one >> 32 * n & M32 for one in compare])
        if kind != "buffer":
            wave.vector(12 + n, [n] * LANES)
    target = 0 if kind == "buffer" else 12
    expected = [whole([wave.lanes(target + n)[lane] for n in range(count)]) for lane in range(LANES)]
    for lane in filter(wave.is_active, range(LANES)):
        at, was = shared[lane], 0
        if at + size <= place.records:
            was = int.from_bytes(model[at : at + size], "little")
            if bare == "cmpswap":
                result = new[lane] if was == compare[lane] else was
            else:
                result = ATOMICS[bare](was, new[lane], bits)
            model[at : at + size] = result.to_bytes(size, "little")
        if returns:
            expected[lane] = was
    data = span("v", 0, 2 * count if bare == "cmpswap" else count)
    if kind == "buffer":
        operands = joined(data, place.after)
    else:
        operands = joined(span("v", 12, count) if returns else "", place.before, data, place.after)
    wave.run(f"{kind}_atomic_{name} {operands} {place.modifiers}{' sc0' if returns else ''}")
    assert wave.bytes_.tobytes() == bytes(model)
    assert [whole([wave.lanes(target + n)[lane] for n in range(count)]) for lane in range(LANES)] == expected


def test_every_mnemonic_is_here() -> None:
    tested = {f"{kind}_load_{name}" for kind in KINDS for name in (*WIDE, *SMALL_LOADS)}
    tested |= {f"{kind}_store_{name}" for kind in KINDS for name in STORES}
    tested |= {f"{kind}_atomic_{name}" for kind in KINDS[:3] for name in ATOMIC_NAMES}
    tested |= {f"s_{buffer}load_{name}" for buffer in ("", "buffer_") for name in SCALAR} | set(LDS_COPIES)
    assert of_module("global_memory") == tested
