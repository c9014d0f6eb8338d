"""AMD: CDNA 3 (gfx942) and CDNA 4 (gfx950), and the Instinct products built on them."""

from __future__ import annotations

from m3gen.targets.architecture import Architecture, Vendor
from m3gen.targets.device import Device

_AMD_DOCS = "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs"
CDNA3_PAPER = f"AMD CDNA 3 white paper, {_AMD_DOCS}/white-papers/amd-cdna-3-white-paper.pdf"
CDNA4_PAPER = f"AMD CDNA 4 white paper, {_AMD_DOCS}/white-papers/amd-cdna-4-architecture-whitepaper.pdf"
CDNA3_ISA = (
    "AMD Instinct MI300 (CDNA 3) ISA reference, "
    f"{_AMD_DOCS}/instruction-set-architectures/amd-instinct-mi300-cdna3-instruction-set-architecture.pdf"
)
CDNA4_ISA = (
    "AMD CDNA 4 ISA reference, "
    f"{_AMD_DOCS}/instruction-set-architectures/amd-instinct-cdna4-instruction-set-architecture.pdf"
)
ROCM_SPECS = "ROCm GPU specifications, https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html"
LLVM = (
    "LLVM's AMDGPU subtarget tables, "
    "https://github.com/llvm/llvm-project/blob/main/llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp"
)
PROFILER = (
    "ROCm Compute Profiler, speed-of-light peaks, "
    "https://github.com/ROCm/rocprofiler-compute/tree/amd-mainline/src/rocprof_compute_soc/analysis_configs"
)
PROFILER_MODEL = (
    "ROCm Compute Profiler performance model, "
    "https://rocm.docs.amd.com/projects/rocprofiler-compute/en/latest/conceptual/pipeline-descriptions.html"
)
MI300X_MEASURED = "Chips and Cheese, https://chipsandcheese.com/p/testing-amds-giant-mi300x"
_PRODUCTS = "https://www.amd.com/en/products/accelerators/instinct"

# What LLVM says of both: EUs per CU, waves per EU, the unified VGPR file and its granule of 8 per lane.
_SHARED_SOURCES = {
    "wave_size": ROCM_SPECS,
    "simds_per_cu": f"getEUsPerCU, {LLVM}",
    "max_waves_per_simd": f"getMaxWavesPerEU, {LLVM}",
    "max_workgroups_per_cu": f"getMaxWorkGroupsPerCU: one per wave slot, {LLVM}",
    "max_threads_per_workgroup": f"getMaxFlatWorkGroupSize, {LLVM}",
    "registers_per_simd": f"512 KiB of VGPRs per CU over four SIMDs, {ROCM_SPECS}; getTotalNumVGPRs, {LLVM}",
    "register_granule": f"getVGPRAllocGranule: 8 per lane, 64 lanes, {LLVM}",
    "max_registers_per_lane": f"getTotalNumVGPRs: 256 VGPRs and 256 AGPRs in one file, {LLVM}",
    "shared_reserved": "derived: getLocalMemorySize hands the whole LDS to workgroups, " + LLVM,
    "vector_ops_per_clock": (
        f"VALU peak of 64 lanes, {PROFILER}; the white papers' 256 FLOP per clock and CU count packed FP32"
    ),
    "l1_bytes_per_clock": f"vL1D peak of one 128-byte line per clock, {PROFILER}; {CDNA3_PAPER}",
}

GFX942 = Architecture(
    name="gfx942",
    vendor=Vendor.AMD,
    backend="hip",
    backend_arch="gfx942",
    wave_size=64,
    simds_per_cu=4,
    max_waves_per_simd=8,
    max_workgroups_per_cu=32,
    max_threads_per_workgroup=1024,
    registers_per_simd=512 * 64,
    register_granule=8 * 64,
    max_registers_per_lane=512,
    shared_bytes_per_cu=64 << 10,
    shared_bytes_per_workgroup=64 << 10,
    shared_granule=512,
    shared_reserved=0,
    shared_bytes_per_clock=128,
    l1_bytes_per_clock=128,
    vector_ops_per_clock=64,
    transcendental_ops_per_clock=16,
    matrix_flops_per_clock={"bf16": 2048, "fp16": 2048, "e4m3fnuz": 4096, "fp32": 256},
    fp8="e4m3fnuz",
    sources=_SHARED_SOURCES
    | {
        "shared_bytes_per_cu": f"{CDNA3_PAPER}; {ROCM_SPECS}",
        "shared_bytes_per_workgroup": f"getAddressableLocalMemorySize, {LLVM}",
        "shared_granule": f"getLdsDwGranularity: 128 dwords, {LLVM}; {CDNA3_ISA}",
        "shared_bytes_per_clock": f"32 banks of 4 bytes, 64 bytes per pair of SIMDs, {PROFILER_MODEL}",
        "transcendental_ops_per_clock": f"derived: quarter rate of the 64 lanes, {CDNA3_ISA}",
        "matrix_flops_per_clock": f"table 1, {CDNA3_PAPER}",
    },
)

GFX950 = Architecture(
    name="gfx950",
    vendor=Vendor.AMD,
    backend="hip",
    backend_arch="gfx950",
    wave_size=64,
    simds_per_cu=4,
    max_waves_per_simd=8,
    max_workgroups_per_cu=32,
    max_threads_per_workgroup=1024,
    registers_per_simd=512 * 64,
    register_granule=8 * 64,
    max_registers_per_lane=512,
    shared_bytes_per_cu=160 << 10,
    shared_bytes_per_workgroup=160 << 10,
    shared_granule=1280,
    shared_reserved=0,
    shared_bytes_per_clock=128,
    l1_bytes_per_clock=128,
    vector_ops_per_clock=64,
    transcendental_ops_per_clock=32,
    matrix_flops_per_clock={"bf16": 4096, "fp16": 4096, "e4m3fn": 8192, "fp32": 256},
    fp8="e4m3fn",
    sources=_SHARED_SOURCES
    | {
        "shared_bytes_per_cu": f"{CDNA4_PAPER}; {ROCM_SPECS}",
        "shared_bytes_per_workgroup": f"FeatureAddressableLocalMemorySize163840, {LLVM}",
        "shared_granule": f"getLdsDwGranularity: 320 dwords, {LLVM}; {CDNA4_ISA}",
        "shared_bytes_per_clock": f"{CDNA4_PAPER}; {PROFILER}",
        "transcendental_ops_per_clock": f"derived: twice CDNA 3's rate, {CDNA4_PAPER}",
        "matrix_flops_per_clock": f"table of peak FLOPS per clock and CU, {CDNA4_PAPER}",
    },
)

_L2_BYTES_PER_CLOCK = 16 * 128  # per XCD: 16 channels, a 128-byte line each (CDNA 3 white paper)


def _device(
    name: str,
    architecture: Architecture,
    *,
    compute_units: int,
    chiplets: int,
    clock_hz: float,
    last_level_bytes_per_s: float,
    memory_gib: int,
    memory_bytes_per_s: float,
    aliases: tuple[str, ...],
    sheet: str,
    sources: dict[str, str],
) -> Device:
    """An Instinct product, which has 4 MiB of L2 per XCD and 256 MiB of Infinity Cache.

    `sheet` is the source of what `sources` leaves out.
    """
    stated = ("compute_units", "chiplets", "clock_hz", "memory_bytes", "memory_bytes_per_s")
    caches = {
        "l2_bytes": f"4 MiB per XCD, {ROCM_SPECS}",
        "last_level_bytes": f"256 MiB of Infinity Cache, {ROCM_SPECS}",
        "l2_bytes_per_s": (
            "derived: XCDs x 16 channels x 128 bytes per clock "
            f"({CDNA3_PAPER}, 34.4 TB/s on MI300X; the same peak in {PROFILER}) at the engine clock"
        ),
    }
    return Device(
        name=name,
        architecture=architecture,
        compute_units=compute_units,
        chiplets=chiplets,
        clock_hz=clock_hz,
        l2_bytes=chiplets * (4 << 20),
        last_level_bytes=256 << 20,
        last_level_bytes_per_s=last_level_bytes_per_s,
        l2_bytes_per_s=chiplets * _L2_BYTES_PER_CLOCK * clock_hz,
        memory_bytes=memory_gib << 30,
        memory_bytes_per_s=memory_bytes_per_s,
        aliases=aliases,
        sources=dict.fromkeys(stated, sheet) | caches | sources,
    )


MI300X = _device(
    "MI300X",
    GFX942,
    compute_units=304,
    chiplets=8,
    clock_hz=2.1e9,
    last_level_bytes_per_s=11.9e12,
    memory_gib=192,
    memory_bytes_per_s=5.3e12,
    aliases=("MI300X_OAM", "MI300X-O", "MI300X VF"),
    sheet=f"AMD Instinct MI300X data sheet, {_PRODUCTS}/mi300/mi300x.html; {ROCM_SPECS}",
    sources={
        "last_level_bytes_per_s": f"measured, of a peak of 17.2 TB/s: {MI300X_MEASURED}",
    },
)

MI300A = _device(
    "MI300A",
    GFX942,
    compute_units=228,
    chiplets=6,
    clock_hz=2.1e9,
    last_level_bytes_per_s=11.9e12 * 6 / 8,
    memory_gib=128,
    memory_bytes_per_s=5.3e12,
    aliases=("MI300A_APU",),
    sheet=f"AMD Instinct MI300A data sheet, {_PRODUCTS}/mi300/mi300a.html; {ROCM_SPECS}",
    sources={
        "last_level_bytes_per_s": (
            f"derived: MI300X's measured 11.9 TB/s ({MI300X_MEASURED}) over 6 XCD ports instead of 8"
        ),
    },
)

MI325X = _device(
    "MI325X",
    GFX942,
    compute_units=304,
    chiplets=8,
    clock_hz=2.1e9,
    last_level_bytes_per_s=11.9e12,
    memory_gib=256,
    memory_bytes_per_s=6.0e12,
    aliases=("MI325_OAM", "MI325X_OAM", "MI325X VF"),
    sheet=f"AMD Instinct MI325X data sheet, {_PRODUCTS}/mi300/mi325x.html; {ROCM_SPECS}",
    sources={
        "last_level_bytes_per_s": f"derived: the dies of MI300X, measured there: {MI300X_MEASURED}",
    },
)

MI308X = _device(
    "MI308X",
    GFX942,
    compute_units=80,
    chiplets=4,
    clock_hz=2.1e9,
    last_level_bytes_per_s=11.9e12 * 4 / 8,
    memory_gib=192,
    memory_bytes_per_s=5.3e12,
    aliases=("MI308X_OAM", "MI308X VF"),
    sheet="derived: no public data sheet; MI300X's package with fewer XCDs",
    sources={
        "compute_units": "80 CUs in shipped tuning tables, https://github.com/ROCm/aiter/issues/4634",
        "chiplets": (
            "4 XCDs in SPX mode, "
            "https://github.com/ROCm/rocprofiler-compute/blob/amd-mainline/src/utils/mi_gpu_spec.yaml"
        ),
        "last_level_bytes_per_s": (
            f"derived: MI300X's measured 11.9 TB/s ({MI300X_MEASURED}) over 4 XCD ports instead of 8"
        ),
    },
)

_CDNA4_LAST_LEVEL = (
    f"derived: 128 channels of 64 bytes as on CDNA 3 ({CDNA4_PAPER}), so MI300X's measured figure is kept "
    f"({MI300X_MEASURED}); a higher fabric clock is not published"
)

MI350X = _device(
    "MI350X",
    GFX950,
    compute_units=256,
    chiplets=8,
    clock_hz=2.2e9,
    last_level_bytes_per_s=11.9e12,
    memory_gib=288,
    memory_bytes_per_s=8.0e12,
    aliases=("MI350_OAM", "MI350X_OAM", "MI350X VF"),
    sheet=f"AMD Instinct MI350X data sheet, {_PRODUCTS}/mi350/mi350x.html; {ROCM_SPECS}",
    sources={
        "last_level_bytes_per_s": _CDNA4_LAST_LEVEL,
    },
)

MI355X = _device(
    "MI355X",
    GFX950,
    compute_units=256,
    chiplets=8,
    clock_hz=2.4e9,
    last_level_bytes_per_s=11.9e12,
    memory_gib=288,
    memory_bytes_per_s=8.0e12,
    aliases=("MI355_OAM", "MI355X_OAM", "MI355X VF"),
    sheet=f"AMD Instinct MI355X data sheet, {_PRODUCTS}/mi350/mi355x.html; {ROCM_SPECS}",
    sources={
        "last_level_bytes_per_s": _CDNA4_LAST_LEVEL,
    },
)

ARCHITECTURES = (GFX942, GFX950)
DEVICES = (MI300X, MI300A, MI325X, MI308X, MI350X, MI355X)
