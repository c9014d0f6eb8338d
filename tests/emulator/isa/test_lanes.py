"""Movement between lanes and between lanes and scalars: DPP, readlane, permlane swaps, counts below a lane."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.emulator.faults import UnknownInstruction
from tests.emulator.harness import LANES, machine
from tests.emulator.isa.memories import ALL, M32, MASKS, QUICK, SEEDS, Wave, of_module

Lanes = list[int]


def kept(wave: Wave, found: Callable[[int], int], before: Lanes) -> Lanes:
    """What a register holds when only the lanes of EXEC are written."""
    return [found(lane) if wave.is_active(lane) else before[lane] for lane in range(LANES)]


def first_lane(wave: Wave, rng: random.Random) -> None:
    values = wave.lanes(1)
    wave.run("v_readfirstlane_b32 s20, v1")
    lowest = next((lane for lane in range(LANES) if wave.is_active(lane)), 0)
    assert wave.word(20) == values[lowest]


def read_lane(wave: Wave, rng: random.Random) -> None:
    values, lane = wave.lanes(1), rng.getrandbits(32)
    wave.scalar(9, lane)
    wave.run(f"v_readlane_b32 s20, v1, s9\nv_readlane_b32 s21, v1, {lane % 64}")
    assert wave.word(20) == wave.word(21) == values[lane % 64]


def write_lane(wave: Wave, rng: random.Random) -> None:
    """Whatever EXEC says."""
    before, lane, value = wave.lanes(1), rng.getrandbits(32), rng.getrandbits(32)
    wave.scalar(9, lane)
    wave.scalar(10, value)
    wave.run("v_writelane_b32 v1, s10, s9")
    assert wave.lanes(1) == [value if one == lane % 64 else before[one] for one in range(LANES)]


def accumulator_read(wave: Wave, rng: random.Random) -> None:
    before, values = wave.lanes(1), wave.words()
    wave.vector(256 + 3, values)
    wave.run("v_accvgpr_read_b32 v1, a3")
    assert wave.lanes(1) == kept(wave, values.__getitem__, before)


def accumulator_write(wave: Wave, rng: random.Random) -> None:
    before, values = wave.words(), wave.lanes(1)
    wave.vector(256 + 3, before)
    wave.run("v_accvgpr_write_b32 a3, v1\nv_accvgpr_write_b32 a4, -5")
    assert wave.lanes(256 + 3) == kept(wave, values.__getitem__, before)
    assert wave.lanes(256 + 4) == kept(wave, lambda lane: M32 - 4, [0] * LANES)


def accumulator_move(wave: Wave, rng: random.Random) -> None:
    before, values = wave.words(), wave.words()
    wave.vector(256 + 3, before)
    wave.vector(256 + 4, values)
    wave.run("v_accvgpr_mov_b32 a3, a4")
    assert wave.lanes(256 + 3) == kept(wave, values.__getitem__, before)


def counted(low: bool) -> Callable[[Wave, random.Random], None]:
    def check(wave: Wave, rng: random.Random) -> None:
        before, masks, addends = wave.lanes(0), wave.lanes(1), wave.lanes(2)
        wave.run(f"v_mbcnt_{'lo' if low else 'hi'}_u32_b32 v0, v1, v2")

        def found(lane: int) -> int:
            below = range(min(lane, 32)) if low else range(max(lane - 32, 0))
            return (addends[lane] + sum(masks[lane] >> bit & 1 for bit in below)) & M32

        assert wave.lanes(0) == kept(wave, found, before)

    return check


def swapped(width: int) -> Callable[[Wave, random.Random], None]:
    """Odd rows of the first against even rows of the second, rows of `width` lanes."""

    def check(wave: Wave, rng: random.Random) -> None:
        first, second = wave.lanes(1), wave.lanes(2)
        wave.run(f"v_permlane{width}_swap_b32 v1, v2")

        def new_first(lane: int) -> int:
            return second[lane - width] if lane // width % 2 else first[lane]

        def new_second(lane: int) -> int:
            return second[lane] if lane // width % 2 else first[lane + width]

        assert wave.lanes(1) == kept(wave, new_first, first)
        assert wave.lanes(2) == kept(wave, new_second, second)

    return check


def exchanged(wave: Wave, rng: random.Random) -> None:
    first, second = wave.lanes(1), wave.lanes(2)
    wave.run("v_swap_b32 v1, v2")
    assert wave.lanes(1) == kept(wave, second.__getitem__, first)
    assert wave.lanes(2) == kept(wave, first.__getitem__, second)


def nothing(wave: Wave, rng: random.Random) -> None:
    before = [wave.lanes(n) for n in range(16)]
    wave.run("v_nop")
    assert [wave.lanes(n) for n in range(16)] == before


MEANINGS: dict[str, Callable[[Wave, random.Random], None]] = {
    "v_readfirstlane_b32": first_lane,
    "v_readlane_b32": read_lane,
    "v_writelane_b32": write_lane,
    "v_accvgpr_read_b32": accumulator_read,
    "v_accvgpr_write_b32": accumulator_write,
    "v_accvgpr_mov_b32": accumulator_move,
    "v_mbcnt_lo_u32_b32": counted(low=True),
    "v_mbcnt_hi_u32_b32": counted(low=False),
    "v_permlane32_swap_b32": swapped(32),
    "v_permlane16_swap_b32": swapped(16),
    "v_swap_b32": exchanged,
    "v_nop": nothing,
}


@pytest.mark.parametrize("mnemonic", MEANINGS)
@QUICK
@given(seed=SEEDS, active=MASKS)
def test_movement(mnemonic: str, seed: int, active: int) -> None:
    rng = random.Random(seed)
    MEANINGS[mnemonic](Wave(rng, active), rng)


def test_the_number_of_a_lane() -> None:
    """How compilers ask for it."""
    wave = Wave(random.Random(0))
    wave.run("v_mbcnt_lo_u32_b32 v0, -1, 0\nv_mbcnt_hi_u32_b32 v0, -1, v0")
    assert wave.lanes(0) == list(range(LANES))


def within(lane: int, width: int, to: int) -> int | None:
    """A lane of the same row of `width`, or none when it is outside."""
    return lane // width * width + to if 0 <= to < width else None


# The lane that a lane reads; none where there is none.
DPP: dict[str, Callable[[int], int | None]] = {
    "quad_perm:[1,0,3,2]": lambda lane: lane ^ 1,
    "quad_perm:[3,3,0,1]": lambda lane: lane - lane % 4 + (3, 3, 0, 1)[lane % 4],
    "row_mirror": lambda lane: within(lane, 16, 15 - lane % 16),
    "row_half_mirror": lambda lane: within(lane, 8, 7 - lane % 8),
    "row_bcast:15": lambda lane: lane // 16 * 16 - 1 if lane >= 16 else None,
    "row_bcast:31": lambda lane: 31 if lane >= 32 else None,
    "wave_shr:1": lambda lane: lane - 1 if lane else None,
    **{f"row_shl:{n}": lambda lane, n=n: within(lane, 16, lane % 16 + n) for n in (1, 4, 15)},
    **{f"row_shr:{n}": lambda lane, n=n: within(lane, 16, lane % 16 - n) for n in (1, 8, 15)},
    **{f"row_ror:{n}": lambda lane, n=n: within(lane, 16, (lane % 16 - n) % 16) for n in (1, 8, 15)},
    **{f"row_newbcast:{n}": lambda lane, n=n: within(lane, 16, n) for n in (0, 7, 15)},
}


@pytest.mark.parametrize("control", DPP)
@QUICK
@given(seed=SEEDS, active=MASKS, rows=st.integers(0, 15), banks=st.sampled_from([15, 5, 8]), bound=st.booleans())
def test_dpp(control: str, seed: int, active: int, rows: int, banks: int, bound: bool) -> None:
    """A lane whose source is not there or not in EXEC keeps what it had, or reads 0 with bound_ctrl; one of a row or
    bank that is masked keeps it too."""
    wave = Wave(random.Random(seed), active)
    before, source, other = wave.lanes(0), wave.lanes(1), wave.lanes(2)
    flag = " bound_ctrl:1" if bound else ""
    modifiers = f"{control} row_mask:{rows:#x} bank_mask:{banks:#x}{flag}"
    wave.run(f"v_add_u32_dpp v0, v1, v2 {modifiers}")

    def found(lane: int) -> int:
        if not (rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1):
            return before[lane]
        at = DPP[control](lane)
        if at is not None and wave.is_active(at):
            return (source[at] + other[lane]) & M32
        return other[lane] if bound else before[lane]

    assert wave.lanes(0) == kept(wave, found, before)


def test_a_dpp_control_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownInstruction, match="an unknown DPP control, line 2"):
        machine("v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf")


def test_readlane_of_a_lane_outside_exec() -> None:
    wave = Wave(random.Random(1), ALL ^ 1 << 7)
    wave.run("v_readlane_b32 s20, v1, 7")
    assert wave.word(20) == wave.lanes(1)[7]


def test_every_mnemonic_is_here() -> None:
    assert of_module("lanes") == set(MEANINGS)
