"""LDS passes by hand: which lanes go together, and what their words cost."""

from __future__ import annotations

import numpy as np
import pytest

from m3gen.emulator.banks import passes

ALL = np.ones((1, 64), bool)
LANES = np.arange(64)[None, :]


def cost(
    arch: str, where: np.ndarray, width: int, *, write: bool = False, active: np.ndarray = ALL
) -> tuple[int, int]:
    needed, least = passes(arch, where, active, width, write=write)
    return int(needed[0]), int(least[0])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_neighbouring_words_do_not_conflict(arch: str) -> None:
    assert cost(arch, LANES * 4, 4) == (2, 2)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_one_word_for_all_is_read_once_a_phase(arch: str) -> None:
    assert cost(arch, 0 * LANES, 4) == (2, 2)


@pytest.mark.parametrize(("arch", "passed"), [("gfx942", 64), ("gfx950", 32)])
def test_a_column_of_128_bytes_a_row_is_one_bank_of_32_and_two_of_64(arch: str, passed: int) -> None:
    assert cost(arch, LANES * 128, 4) == (passed, 2)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_writes_see_32_banks_on_both(arch: str) -> None:
    assert cost(arch, LANES * 128, 4, write=True) == (64, 2)
    assert cost(arch, LANES * 132, 4, write=True) == (2, 2)


@pytest.mark.parametrize(
    ("arch", "width", "write", "phases"),
    [
        ("gfx942", 8, False, 4),
        ("gfx942", 16, False, 8),
        ("gfx942", 16, True, 8),
        ("gfx950", 8, False, 2),
        ("gfx950", 16, False, 4),
        ("gfx950", 8, True, 4),
        ("gfx950", 16, True, 8),
    ],
)
def test_rows_without_gaps_move_all_banks_in_every_phase(arch: str, width: int, write: bool, phases: int) -> None:
    assert cost(arch, LANES * width, width, write=write) == (phases, phases)


def test_lanes_0_and_20_of_a_wide_read_go_together_and_0_and_4_do_not() -> None:
    """ds_read_b128 of gfx942: of two lanes at different rows of one bank, those of one phase cost two passes."""
    for other, passed in ((20, 2), (4, 2), (1, 2), (8, 2)):
        active = np.isin(LANES, (0, other))
        least = 1 if other in (20, 1) else 2
        assert cost("gfx942", np.where(LANES == 0, 0, 1024), 16, active=active) == (passed, least)


def test_lanes_that_do_not_act_cost_nothing() -> None:
    assert cost("gfx942", LANES * 128, 4, active=LANES < 3) == (3, 1)
    assert cost("gfx942", LANES * 128, 4, active=LANES < 0) == (0, 0)


def test_a_base_below_zero_wraps() -> None:
    assert cost("gfx942", LANES * 4 + 2**32, 4) == (2, 2)


def test_each_wave_is_on_its_own() -> None:
    where = np.concatenate([LANES * 4, LANES * 128])
    needed, least = passes("gfx942", where, np.ones((2, 64), bool), 4, write=False)
    assert (needed.tolist(), least.tolist()) == ([2, 64], [2, 2])
