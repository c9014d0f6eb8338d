"""Occupancy against cases worked by hand from the vendors' rules, and what must hold of every kernel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.targets import ARCHITECTURES, Occupancy, occupancy

# (architecture, registers per lane, shared bytes, waves) -> (workgroups per CU, waves per SIMD, limit)
CASES = {
    # CDNA: 512 registers per lane and SIMD in steps of 8, 8 waves at most.
    ("gfx942", 64, 0, 4): (8, 8.0, "waves"),
    ("gfx942", 65, 0, 4): (7, 7.0, "registers"),
    ("gfx942", 128, 0, 4): (4, 4.0, "registers"),
    ("gfx942", 129, 0, 4): (3, 3.0, "registers"),
    ("gfx942", 512, 0, 4): (1, 1.0, "registers"),
    ("gfx942", 512, 0, 8): (0, 0.0, "registers"),
    ("gfx942", 513, 0, 1): (0, 0.0, "registers"),
    # A workgroup of one wave needs one SIMD: four of them run where one of four waves does.
    ("gfx942", 512, 0, 1): (4, 1.0, "registers"),
    ("gfx942", 195, 0, 1): (8, 2.0, "registers"),
    ("gfx942", 24, 0, 1): (32, 8.0, "waves"),
    ("gfx942", 24, 0, 16): (2, 8.0, "waves"),
    ("gfx942", 24, 0, 32): (0, 0.0, "waves"),  # 2048 threads
    # LDS: 64 KiB in steps of 512 bytes; 160 KiB in steps of 1280.
    ("gfx942", 64, 65536, 4): (1, 1.0, "shared"),
    ("gfx942", 64, 65537, 4): (0, 0.0, "shared"),
    ("gfx942", 64, 32768, 4): (2, 2.0, "shared"),
    ("gfx942", 64, 32769, 4): (1, 1.0, "shared"),
    ("gfx950", 64, 32768, 4): (4, 4.0, "shared"),
    ("gfx950", 64, 40960, 4): (4, 4.0, "shared"),
    ("gfx950", 64, 40961, 4): (3, 3.0, "shared"),
    ("gfx950", 64, 163840, 4): (1, 1.0, "shared"),
    # Split-KV decode attention as Triton compiles it for bf16 at head dim 128.
    ("gfx942", 481, 32768, 1): (2, 0.5, "shared"),
    ("gfx942", 326, 32768, 2): (2, 1.0, "registers"),
    ("gfx942", 308, 32768, 4): (1, 1.0, "registers"),
    ("gfx942", 256, 32768, 8): (1, 2.0, "registers"),
    ("gfx942", 242, 32768, 4): (2, 2.0, "registers"),
    ("gfx950", 415, 32768, 1): (4, 1.0, "registers"),
    ("gfx950", 215, 135104, 4): (1, 1.0, "shared"),
    ("sm_90", 195, 0, 4): (2, 2.0, "registers"),
    ("sm_90", 109, 0, 8): (2, 4.0, "registers"),
    # CUDA occupancy calculator, compute capability 9.0: 16384 registers per sub-partition in steps of 256 a
    # warp; 228 KiB per SM, 227 KiB per block, 1 KiB reserved; 64 warps, 32 blocks.
    ("sm_90", 32, 0, 8): (8, 16.0, "waves"),
    ("sm_90", 33, 0, 8): (6, 12.0, "registers"),
    ("sm_90", 128, 0, 8): (2, 4.0, "registers"),
    ("sm_90", 255, 0, 8): (1, 2.0, "registers"),
    ("sm_90", 256, 0, 8): (0, 0.0, "registers"),
    ("sm_90", 168, 0, 4): (3, 3.0, "registers"),  # 5376 a warp: three to a sub-partition
    ("sm_90", 16, 0, 1): (32, 8.0, "workgroups"),
    ("sm_90", 32, 232448, 4): (1, 1.0, "shared"),
    ("sm_90", 32, 232449, 4): (0, 0.0, "shared"),
    ("sm_90", 32, 115712, 4): (2, 2.0, "shared"),  # 113 KiB and the reserved one are half an SM
    ("sm_90", 32, 115713, 4): (1, 1.0, "shared"),
    ("sm_100", 32, 65536, 2): (3, 1.5, "shared"),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_worked_by_hand(case: tuple[str, int, int, int]) -> None:
    arch, registers, shared, waves = case
    assert occupancy(ARCHITECTURES[arch], registers, shared, waves) == Occupancy(*CASES[case])


@pytest.mark.parametrize("figures", [(-1, 0, 4), (64, -1, 4), (64, 0, 0)])
def test_nonsense_is_refused(figures: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="num_warps="):
        occupancy(ARCHITECTURES["gfx942"], *figures)


archs = st.sampled_from(sorted(ARCHITECTURES)).map(ARCHITECTURES.__getitem__)
registers = st.integers(0, 520)
shared = st.integers(0, 240_000)
warps = st.sampled_from([1, 2, 3, 4, 8, 16])


@given(archs, registers, shared, warps)
def test_what_is_resident_fits(arch, registers, shared, warps) -> None:  # type: ignore[no-untyped-def]
    fit = occupancy(arch, registers, shared, warps)
    resident = fit.workgroups_per_cu * warps
    assert fit.waves_per_simd * arch.simds_per_cu == resident
    assert 0 <= fit.workgroups_per_cu <= arch.max_workgroups_per_cu
    assert resident <= arch.simds_per_cu * arch.max_waves_per_simd
    assert resident * registers * arch.wave_size <= arch.simds_per_cu * arch.registers_per_simd
    assert fit.workgroups_per_cu * (shared + arch.shared_reserved) <= arch.shared_bytes_per_cu


@given(archs, registers, shared, warps, st.integers(0, 64), st.integers(0, 4096))
def test_taking_more_never_fits_more(arch, registers, shared, warps, more, bytes_more) -> None:  # type: ignore[no-untyped-def]
    fit = occupancy(arch, registers, shared, warps)
    assert occupancy(arch, registers + more, shared + bytes_more, warps).workgroups_per_cu <= (
        fit.workgroups_per_cu
    )


@given(archs, registers, shared, warps)
def test_the_limit_is_what_binds(arch, registers, shared, warps) -> None:  # type: ignore[no-untyped-def]
    fit = occupancy(arch, registers, shared, warps)
    lighter = {"registers": (0, shared), "shared": (registers, 0)}
    if fit.limit in lighter:
        freed = occupancy(arch, *lighter[fit.limit], warps)
        assert freed.limit != fit.limit
        assert freed.workgroups_per_cu >= fit.workgroups_per_cu
    else:
        assert occupancy(arch, 0, 0, warps).workgroups_per_cu == fit.workgroups_per_cu
