from __future__ import annotations

import re

import pytest

from m3gen.compiler.matrix import AMD_CYCLES, NVIDIA_WARP_FLOPS, amd_cycles, nvidia_cycles
from m3gen.targets import architecture


def flops(mnemonic: str) -> int:
    m, n, k = map(int, re.search(r"_(\d+)x(\d+)x(\d+)_", mnemonic).groups())  # type: ignore[union-attr]
    blocks = re.search(r"_(\d+)b_", mnemonic)
    return 2 * m * n * k * (int(blocks[1]) if blocks else 1)


@pytest.mark.parametrize(
    ("arch", "dtype", "mnemonics"),
    [
        ("gfx942", "bf16", ["v_mfma_f32_16x16x16_bf16", "v_mfma_f32_32x32x8_bf16"]),
        ("gfx942", "fp16", ["v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_f16"]),
        ("gfx942", "e4m3fnuz", ["v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_32x32x16_fp8_fp8"]),
        ("gfx942", "fp32", ["v_mfma_f32_16x16x4_f32", "v_mfma_f32_32x32x2_f32"]),
        ("gfx950", "bf16", ["v_mfma_f32_16x16x32_bf16", "v_mfma_f32_32x32x16_bf16"]),
        ("gfx950", "e4m3fn", ["v_mfma_f32_16x16x128_f8f6f4", "v_mfma_f32_32x32x64_f8f6f4"]),
    ],
)
def test_dense_shapes_reach_the_architectures_rate(arch: str, dtype: str, mnemonics: list[str]) -> None:
    """Two public tables, passes per instruction and FLOP per clock, must say the same."""
    target = architecture(arch)
    for mnemonic in mnemonics:
        cycles = amd_cycles(arch, mnemonic, "")
        assert cycles is not None
        assert flops(mnemonic) / cycles == target.matrix_flops_per_clock[dtype] / target.simds_per_cu


@pytest.mark.parametrize("arch", AMD_CYCLES)
def test_no_instruction_is_faster_than_the_fastest_rate(arch: str) -> None:
    target = architecture(arch)
    fastest = max(target.matrix_flops_per_clock.values()) / target.simds_per_cu
    assert all(flops(mnemonic) / cycles <= fastest for mnemonic, cycles in AMD_CYCLES[arch].items())


@pytest.mark.parametrize(
    ("operands", "cycles"),
    [
        ("v[0:3], v[4:11], v[4:11], v[0:3]", 32),
        ("v[0:3], v[4:11], v[4:7], v[0:3] blgp:4", 32),
        ("v[0:3], v[4:7], v[4:7], v[0:3] cbsz:4 blgp:4", 16),
        ("v[0:3], v[4:9], v[4:9], v[0:3] cbsz:2 blgp:3", 16),
        ("v[0:3], v[4:11], v[4:11], v[0:3], v20, v21 op_sel_hi:[0,0,0] cbsz:1 blgp:1", 32),
    ],
)
def test_narrow_formats_halve_the_passes_when_both_operands_are_narrow(operands: str, cycles: int) -> None:
    assert amd_cycles("gfx950", "v_mfma_f32_16x16x128_f8f6f4", operands) == cycles


@pytest.mark.parametrize(
    ("arch", "mnemonic"),
    [
        ("gfx942", "v_mfma_f32_16x16x32_bf16"),
        ("gfx950", "v_mfma_f32_16x16x8_xf32"),
        ("gfx942", "v_mfma_f32_16x16x128_f8f6f4"),
        ("gfx942", "v_smfmac_f32_16x16x32_f16"),
        ("gfx90a", "v_mfma_f32_16x16x16_f16"),
    ],
)
def test_what_the_table_lacks_is_unknown(arch: str, mnemonic: str) -> None:
    assert amd_cycles(arch, mnemonic, "") is None


@pytest.mark.parametrize(
    ("mnemonic", "cycles"),
    [
        ("HMMA.16816.F32.BF16", 4),
        ("QMMA.16832.F32.E4M3.E4M3", 4),
        ("HGMMA.64x128x16.F32.BF16", 64),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", 32),
        ("HMMA.16816.F32.NEW", None),
        ("UTCHMMA.2CTA", None),
        ("HGMMA.64x128x16.F32.NEW", None),
        ("DMMA.8x8x4", None),
    ],
)
def test_nvidia_cycles_at_the_dense_rate_of_hopper(mnemonic: str, cycles: int | None) -> None:
    target = architecture("sm_90")
    assert nvidia_cycles(mnemonic, target.matrix_flops_per_clock, target.simds_per_cu) == cycles


def test_shapes_in_sass_match_their_flops() -> None:
    shapes = {"1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32)}
    for mnemonic, (count, _) in NVIDIA_WARP_FLOPS.items():
        m, n, k = shapes[mnemonic.split(".")[1]]
        assert count == 2 * m * n * k
