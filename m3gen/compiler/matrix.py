"""Matrix instructions as data: cycles of AMD's, FLOP of NVIDIA's. A mnemonic that is absent is unknown."""

from __future__ import annotations

from collections.abc import Mapping

# Passes per instruction, one pass is 4 cycles of one SIMD's matrix core.
# Source: AMD Instinct MI300 "CDNA3" ISA Reference Guide and AMD "CDNA4" ISA Reference Guide, chapter 7
# (cycles per instruction) and section 12.10 (passes of each VOP3P opcode); the same figures come from
# https://github.com/ROCm/amd_matrix_instruction_calculator.
_COMMON: Mapping[int, tuple[str, ...]] = {
    2: ("f32_4x4x1_16b_f32", "f32_4x4x4_16b_f16", "f32_4x4x4_16b_bf16", "i32_4x4x4_16b_i8"),
    4: (
        "f32_16x16x16_f16",
        "f32_16x16x16_bf16",
        "i32_16x16x32_i8",
        "f32_16x16x32_fp8_fp8",
        "f32_16x16x32_fp8_bf8",
        "f32_16x16x32_bf8_fp8",
        "f32_16x16x32_bf8_bf8",
    ),
    8: (
        "f32_16x16x1_4b_f32",
        "f32_16x16x4_f32",
        "f32_16x16x4_4b_f16",
        "f32_16x16x4_4b_bf16",
        "i32_16x16x4_4b_i8",
        "f32_32x32x8_f16",
        "f32_32x32x8_bf16",
        "i32_32x32x16_i8",
        "f32_32x32x16_fp8_fp8",
        "f32_32x32x16_fp8_bf8",
        "f32_32x32x16_bf8_fp8",
        "f32_32x32x16_bf8_bf8",
    ),
    16: (
        "f32_32x32x1_2b_f32",
        "f32_32x32x2_f32",
        "f32_32x32x4_2b_f16",
        "f32_32x32x4_2b_bf16",
        "i32_32x32x4_2b_i8",
    ),
}
_GFX942_ONLY: Mapping[int, tuple[str, ...]] = {
    4: ("f32_16x16x8_xf32",),
    8: ("f32_32x32x4_xf32", "f64_16x16x4_f64"),
}
_GFX950_ONLY: Mapping[int, tuple[str, ...]] = {
    4: ("f32_16x16x32_f16", "f32_16x16x32_bf16", "i32_16x16x64_i8"),
    8: ("f32_32x32x16_f16", "f32_32x32x16_bf16", "i32_32x32x32_i8"),
    16: ("f64_16x16x4_f64",),
}
# These take twice the passes when either operand is fp8 or bf8: (both 4 or 6 bits, any 8 bits).
_GFX950_F8F6F4: Mapping[str, tuple[int, int]] = {
    "v_mfma_f32_16x16x128_f8f6f4": (4, 8),
    "v_mfma_f32_32x32x64_f8f6f4": (8, 16),
    "v_mfma_scale_f32_16x16x128_f8f6f4": (4, 8),
    "v_mfma_scale_f32_32x32x64_f8f6f4": (8, 16),
}
_CYCLES_PER_PASS = 4


def _cycles(*tables: Mapping[int, tuple[str, ...]]) -> dict[str, int]:
    return {
        f"v_mfma_{name}": passes * _CYCLES_PER_PASS
        for table in tables
        for passes, names in table.items()
        for name in names
    }


AMD_CYCLES: Mapping[str, Mapping[str, int]] = {
    "gfx942": _cycles(_COMMON, _GFX942_ONLY),
    "gfx950": _cycles(_COMMON, _GFX950_ONLY),
}


def amd_cycles(arch: str, mnemonic: str, operands: str) -> int | None:
    """Cycles that one SIMD's matrix core is taken by the instruction; None when it is unknown.

    `operands` tell the element formats of the f8f6f4 family: cbsz of A, blgp of B, 0 (fp8) when not written.
    """
    if arch == "gfx950" and mnemonic in _GFX950_F8F6F4:
        modifiers = dict(word.split(":", 1) for word in operands.split() if ":" in word and "[" not in word)
        eight_bit = any(int(modifiers.get(name, "0"), 0) in (0, 1) for name in ("cbsz", "blgp"))
        return _GFX950_F8F6F4[mnemonic][eight_bit] * _CYCLES_PER_PASS
    return AMD_CYCLES.get(arch, {}).get(mnemonic)


# FLOP of one warp's instruction and the dtype whose rate it runs at. In SASS m, n and k are run together:
# 16816 is m16n8k16. Source: PTX ISA 9.0, "Matrix fragments for mma", whose shapes SASS carries over.
NVIDIA_WARP_FLOPS: Mapping[str, tuple[int, str]] = {
    "HMMA.1688.F32": (2 * 16 * 8 * 8, "fp16"),
    "HMMA.1688.F32.BF16": (2 * 16 * 8 * 8, "bf16"),
    "HMMA.16816.F16": (2 * 16 * 8 * 16, "fp16"),
    "HMMA.16816.F32": (2 * 16 * 8 * 16, "fp16"),
    "HMMA.16816.F32.BF16": (2 * 16 * 8 * 16, "bf16"),
    "HMMA.1684.F32.TF32": (2 * 16 * 8 * 4, "tf32"),
    "HMMA.1688.F32.TF32": (2 * 16 * 8 * 8, "tf32"),
    "IMMA.16816.S8.S8": (2 * 16 * 8 * 16, "int8"),
    "IMMA.16832.S8.S8": (2 * 16 * 8 * 32, "int8"),
    "QMMA.16832.F32.E4M3.E4M3": (2 * 16 * 8 * 32, "e4m3fn"),
    "QMMA.16832.F32.E4M3.E5M2": (2 * 16 * 8 * 32, "e4m3fn"),
    "QMMA.16832.F32.E5M2.E4M3": (2 * 16 * 8 * 32, "e4m3fn"),
    "QMMA.16832.F32.E5M2.E5M2": (2 * 16 * 8 * 32, "e4m3fn"),
}
# wgmma of Hopper: opcode and the suffix behind its MxNxK field -> dtype. M is 64 over the group's four warps.
NVIDIA_WARPGROUP_DTYPES: Mapping[tuple[str, str], str] = {
    ("HGMMA", "F32"): "fp16",
    ("HGMMA", "F32.BF16"): "bf16",
    ("HGMMA", "F32.TF32"): "tf32",
    ("QGMMA", "F32.E4M3.E4M3"): "e4m3fn",
    ("QGMMA", "F32.E4M3.E5M2"): "e4m3fn",
    ("QGMMA", "F32.E5M2.E4M3"): "e4m3fn",
    ("QGMMA", "F32.E5M2.E5M2"): "e4m3fn",
}


def nvidia_cycles(mnemonic: str, flops_per_clock: Mapping[str, int], subpartitions: int) -> int | None:
    """Cycles that one warp's instruction takes of its sub-partition's tensor core, at the dense rate.

    `flops_per_clock` is the architecture's, per SM and dtype; None when the mnemonic or its rate is unknown.
    A floor: warp-level HMMA reaches about 0.6 of Hopper's dense rate (arXiv 2402.13499, mma throughput).
    """
    opcode, _, rest = mnemonic.partition(".")
    shape, _, suffix = rest.partition(".")
    if mnemonic in NVIDIA_WARP_FLOPS:
        flops, dtype = NVIDIA_WARP_FLOPS[mnemonic]
    elif (opcode, suffix) in NVIDIA_WARPGROUP_DTYPES and shape.count("x") == 2:
        m, n, k = (int(size) for size in shape.split("x"))
        flops, dtype = 2 * m * n * k // 4, NVIDIA_WARPGROUP_DTYPES[opcode, suffix]
    else:
        return None
    rate = flops_per_clock.get(dtype)
    return max(1, flops * subpartitions // rate) if rate else None
