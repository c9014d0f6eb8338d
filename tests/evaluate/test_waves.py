"""The simulation of waves on programs whose clocks are added up by hand."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.evaluate.timing import Latencies
from m3gen.evaluate.waves import simulate
from tests.evaluate.programs import END, LATENCIES, clocks, run, workgroup

START = 97  # between workgroups
ADD = "v_add_u32 v2, v1, v0\n"
LINE = "global_load_dword v1, v0, s[0:1]\n"  # 67 bytes
STRIDED = "v_lshlrev_b32 v0, 7, v0\n"  # 4 clocks; from then on a load touches 64 lines
FAR = "global_load_dword v1, v0, s[0:1]\n"
MFMA = "v_mfma_f32_16x16x16_bf16 v[4:7], v[0:1], v[2:3], v[4:7]\n"  # 4 passes of 4 clocks
OTHER_MFMA = "v_mfma_f32_16x16x16_bf16 v[8:11], v[0:1], v[2:3], v[8:11]\n"
COLUMN = "v_mul_u32_u24 v0, 128, v0\n"  # 4 clocks; from then on the lanes of an access share a bank
READ = "ds_read_b32 v1, v0\n"
DRAIN = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"
# Wave 0 goes on, the others skip: vector unit, scalar unit, branch.
FIRST = "v_readfirstlane_b32 s4, v0\ns_cmp_lg_u32 s4, 0\ns_cbranch_scc1 others\n"
PARTED = 4 + 4 + LATENCIES.branch


# issue


@pytest.mark.parametrize("n", [1, 2, 17])
def test_a_chain_of_vector_instructions_takes_four_clocks_each(n: int) -> None:
    assert clocks(n * ADD) == 4 * n
    assert run(n * ADD).busy == {"valu": 4 * n}


def test_a_transcendental_holds_the_vector_unit_four_times_as_long() -> None:
    assert clocks(5 * "v_exp_f32 v1, v0\n" + ADD) == 5 * 16 + 4


@pytest.mark.parametrize(("waves", "times"), [(2, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_only_waves_of_one_simd_share_its_vector_unit(waves: int, times: int) -> None:
    """Four SIMDs take the waves in turn."""
    assert clocks(30 * ADD, waves) == times * 30 * 4
    assert run(30 * ADD, waves).busy["valu"] == times * 30 * 4


def test_workgroups_lie_on_the_simds_one_after_the_other() -> None:
    assert clocks(500 * ADD, copies=4) == 500 * 4 + 3 * START
    assert clocks(500 * ADD, copies=5) == 2 * 500 * 4


def test_a_branch_takes_longer_than_a_scalar_instruction() -> None:
    assert clocks("s_add_u32 s4, s4, 1\n") == 4
    assert clocks("s_branch next\nnext:\n") == LATENCIES.branch


def test_a_nop_waits_as_long_as_it_says() -> None:
    assert clocks("s_nop 0\n") == 4
    assert clocks("s_nop 7\n") == 8 * 4


# matrix products


def test_a_product_is_waited_for_by_what_uses_it() -> None:
    assert clocks(MFMA + "v_mov_b32 v20, v5\n") == 16 + LATENCIES.matrix + 4


def test_a_product_does_not_hold_up_what_does_not_use_it() -> None:
    assert clocks(MFMA + ADD) == 4 + 4


@pytest.mark.parametrize("n", [2, 9])
def test_a_sum_of_products_goes_on_without_the_latency(n: int) -> None:
    assert clocks(n * MFMA + "v_mov_b32 v20, v5\n") == n * 16 + LATENCIES.matrix + 4
    assert run(n * MFMA).busy["matrix"] == n * 16


def test_a_product_of_a_product_waits_for_it() -> None:
    uses = "v_mfma_f32_16x16x16_bf16 v[8:11], v[4:5], v[2:3], v[8:11]\n"
    assert clocks(MFMA + uses + "v_mov_b32 v20, v8\n") == 2 * (16 + LATENCIES.matrix) + 4


def test_independent_products_fill_the_matrix_unit() -> None:
    """The unit is free after the passes of the first, the wave when the second is issued."""
    assert clocks(MFMA + OTHER_MFMA) == 16 + 4
    assert clocks(MFMA + 3 * ADD + OTHER_MFMA) == 16 + 4


def test_vector_instructions_run_beside_the_products_of_another_wave() -> None:
    """Wave 4 is on the SIMD of wave 0: its products and the others' instructions do not add up."""
    text = FIRST + 20 * MFMA + "v_mov_b32 v20, v5\ns_endpgm\nothers:\n" + 80 * ADD
    busy = run(text, waves=5).busy
    assert busy["matrix"] == 20 * 16
    assert clocks(text, waves=5) < PARTED + 20 * 16 + 80 * 4


# LDS


@pytest.mark.parametrize(("text", "conflicts"), [(COLUMN, 62), ("v_mul_u32_u24 v0, 132, v0\n", 0)])
@pytest.mark.parametrize("conflict", [1, 3])
def test_a_conflict_costs_its_clocks(text: str, conflicts: int, conflict: int) -> None:
    """Two passes serve a wave; the others are conflicts. An instruction takes four clocks anyway."""
    hold = max(2 + conflict * conflicts, 4)
    assert clocks(text + READ + DRAIN, conflict=conflict) == 4 + hold + LATENCIES.shared + 4


def test_reads_of_the_lds_overlap_their_latency() -> None:
    one, four = clocks(COLUMN + READ + DRAIN), clocks(COLUMN + 4 * READ + DRAIN)
    assert four - one == 3 * (2 + LATENCIES.conflict * 62)


def test_workgroups_share_the_lds() -> None:
    """The second one's reads wait behind all of the first one's."""
    hold = 2 + LATENCIES.conflict * 62
    text = COLUMN + 8 * READ + DRAIN
    assert clocks(text) == 4 + 8 * hold + LATENCIES.shared + 4
    assert clocks(text, copies=2) == 4 + 2 * 8 * hold + LATENCIES.shared + 4
    assert run(text, copies=2).busy["lds"] == 2 * 8 * hold


# memory


def test_where_a_load_goes_decides_its_latency() -> None:
    assert clocks(LINE + DRAIN) == 4 + LATENCIES.near + 4
    assert clocks(STRIDED + FAR + DRAIN) == 4 + 64 + LATENCIES.far + 4
    coherent = FAR.replace("\n", " sc0 sc1\n")
    assert clocks(STRIDED + coherent + DRAIN) == 4 + 64 + LATENCIES.coherent + 4
    assert clocks("s_load_dword s4, s[0:1], 0x0\n" + DRAIN) == LATENCIES.scalar + 4


@pytest.mark.parametrize("k", [1, 2, 7])
def test_loads_in_flight_overlap(k: int) -> None:
    assert clocks(STRIDED + k * FAR + DRAIN) == 4 + k * 64 + LATENCIES.far + 4


@pytest.mark.parametrize("k", [1, 2, 7])
def test_a_wait_after_each_load_serialises_them(k: int) -> None:
    assert clocks(STRIDED + k * (FAR + DRAIN)) == 4 + k * (64 + LATENCIES.far + 4)


@pytest.mark.parametrize("left", range(4))
def test_a_wait_waits_for_the_oldest_alone(left: int) -> None:
    assert clocks(STRIDED + 4 * FAR + f"s_waitcnt vmcnt({left})\n") == 4 + (4 - left) * 64 + LATENCIES.far + 4


def test_a_wait_for_more_than_there_is_waits_for_nothing() -> None:
    assert clocks(STRIDED + FAR + "s_waitcnt vmcnt(1)\n") == 4 + 4 + 4


def test_a_wait_for_one_counter_leaves_the_other_alone() -> None:
    text = STRIDED + FAR + READ
    lds = 4 + 4 + 2 + LATENCIES.conflict * 62 + LATENCIES.shared
    assert clocks(text + "s_waitcnt lgkmcnt(0)\n") == lds + 4
    assert clocks(text + "s_waitcnt vmcnt(0)\n") == 4 + 64 + LATENCIES.far + 4


def test_a_near_load_behind_a_far_one_is_done_after_it() -> None:
    """One counter, in order."""
    near = "global_load_dword v2, v3, s[0:1]\n"  # v3 is 0
    assert clocks(STRIDED + FAR + near + DRAIN) == 4 + 64 + LATENCIES.far + 4


# barriers


@pytest.mark.parametrize("n", [3, 40])
def test_a_barrier_waits_for_the_slowest_wave(n: int) -> None:
    text = FIRST + n * ADD + "others:\ns_barrier\n" + 5 * ADD
    assert clocks(text, waves=4) == PARTED + 4 * n + 4 + 5 * 4


@pytest.mark.parametrize("n", [1, 40])
def test_a_wave_that_has_ended_is_not_waited_for(n: int) -> None:
    """The others end after `n` instructions: before wave 0 has arrived, and after."""
    text = FIRST + 10 * ADD + "s_barrier\n" + 5 * ADD + "s_endpgm\nothers:\n" + n * ADD
    arrived = PARTED + max(10 * 4, n * 4 + END)
    assert clocks(text, waves=3) == arrived + 4 + 5 * 4


def test_a_barrier_does_not_wait_for_another_workgroup() -> None:
    assert clocks(10 * ADD + "s_barrier\n" + 10 * ADD, waves=2, copies=2) == START + 10 * 4 + 4 + 10 * 4


# units that take no time


def test_a_free_unit_leaves_what_the_others_take() -> None:
    text = 5 * ADD + COLUMN + 2 * READ + DRAIN
    lds = 2 * (2 + LATENCIES.conflict * 62)

    def without(*units: str) -> float:
        return simulate(workgroup(text), 1, LATENCIES, frozenset(units)).clocks - END

    assert without() == 6 * 4 + lds + LATENCIES.shared + 4
    assert without("valu") == lds + LATENCIES.shared + 4
    assert without("lds") == 6 * 4 + 4 + LATENCIES.shared + 4
    assert without("matrix") == without()


def test_a_free_matrix_unit_leaves_the_latency_of_a_product() -> None:
    found = simulate(workgroup(3 * MFMA + "v_mov_b32 v20, v5\n"), 1, LATENCIES, frozenset({"matrix"}))
    assert found.clocks - END == 3 * 4 - 4 + LATENCIES.matrix + 4
    assert "matrix" not in found.busy


# whatever the program

UNITS = [ADD, "v_exp_f32 v2, v1\n", MFMA, OTHER_MFMA, "v_mov_b32 v20, v5\n", "s_add_u32 s4, s4, 1\n", "s_nop 3\n"]
LOADS = [READ, LINE, "global_load_dword v3, v30, s[0:1]\n", "s_load_dword s5, s[0:1], 0x0\n"]
WAITS = [DRAIN, "s_waitcnt vmcnt(2)\n", "s_waitcnt lgkmcnt(1)\n", "s_barrier\n"]
LINES = st.sampled_from([*UNITS, *LOADS, *WAITS])
PROGRAMS = st.lists(LINES, max_size=40).map(lambda lines: "v_lshlrev_b32 v30, 7, v0\n" + "".join(lines) + DRAIN)
NAMES = [one.name for one in fields(Latencies)]


@settings(max_examples=50, deadline=None)
@given(PROGRAMS, st.sampled_from(NAMES), st.integers(1, 500))
def test_a_longer_latency_never_shortens_a_wave(text: str, name: str, more: int) -> None:
    one = workgroup(text)
    longer = replace(LATENCIES, **{name: getattr(LATENCIES, name) + more})
    assert simulate(one, 1, LATENCIES).clocks <= simulate(one, 1, longer).clocks


@settings(max_examples=50, deadline=None)
@given(PROGRAMS, st.integers(1, 5), st.integers(2, 6))
def test_workgroups_together_take_no_less_than_one_and_no_more_than_all_in_turn(
    text: str, waves: int, copies: int
) -> None:
    one = workgroup(text, waves)
    alone, together = simulate(one, 1, LATENCIES), simulate(one, copies, LATENCIES)
    assert alone.clocks <= together.clocks
    assert together.clocks <= copies * (alone.clocks + START)
    assert together.busy.get("lds", 0) == copies * alone.busy.get("lds", 0)
