"""NVIDIA: Hopper (sm_90) and Blackwell (sm_100), and the data-centre products built on them."""

from __future__ import annotations

from dataclasses import replace

from m3gen.targets.architecture import Architecture, Vendor
from m3gen.targets.device import Device

GUIDE = (
    "CUDA C++ Programming Guide, technical specifications per compute capability, "
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications"
)
THROUGHPUT = (
    "CUDA C++ Programming Guide, throughput of native arithmetic instructions, "
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions"
)
OCCUPANCY_HEADER = "cuda_occupancy.h of the CUDA Toolkit, https://developer.nvidia.com/cuda-toolkit"
HOPPER_TUNING = "Hopper Tuning Guide, https://docs.nvidia.com/cuda/hopper-tuning-guide/"
BLACKWELL_TUNING = "Blackwell Tuning Guide, https://docs.nvidia.com/cuda/blackwell-tuning-guide/"
H100_PAPER = (
    "NVIDIA H100 Tensor Core GPU Architecture, "
    "https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper"
)
A100_PAPER = (
    "NVIDIA A100 Tensor Core GPU Architecture, "
    "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf"
)
H200_SHEET = "NVIDIA H200 data sheet, https://www.nvidia.com/en-us/data-center/h200/"
DGX_B200_SHEET = "DGX B200 data sheet, https://resources.nvidia.com/en-us-dgx-systems/dgx-b200-datasheet"
B200_MEASURED = "Chips and Cheese, https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut"

_A100_L2_BYTES_PER_CLOCK = 5120  # the last L2 read width that NVIDIA published (A100 white paper)

SM_90 = Architecture(
    name="sm_90",
    vendor=Vendor.NVIDIA,
    backend="cuda",
    backend_arch=90,
    wave_size=32,
    simds_per_cu=4,
    max_waves_per_simd=16,
    max_workgroups_per_cu=32,
    max_threads_per_workgroup=1024,
    registers_per_simd=16384,
    register_granule=256,
    max_registers_per_lane=255,
    shared_bytes_per_cu=228 << 10,
    shared_bytes_per_workgroup=227 << 10,
    shared_granule=128,
    shared_reserved=1 << 10,
    shared_bytes_per_clock=128,
    l1_bytes_per_clock=128,
    vector_ops_per_clock=128,
    transcendental_ops_per_clock=16,
    matrix_flops_per_clock={"bf16": 4096, "fp16": 4096, "e4m3fn": 8192},
    fp8="e4m3fn",
    sources={
        "wave_size": GUIDE,
        "simds_per_cu": f"cudaOccSubPartitionsPerMultiprocessor, {OCCUPANCY_HEADER}; {H100_PAPER}",
        "max_waves_per_simd": f"64 resident warps per SM over four sub-partitions, {GUIDE}",
        "max_workgroups_per_cu": GUIDE,
        "max_threads_per_workgroup": GUIDE,
        "registers_per_simd": f"65536 registers per SM over four sub-partitions, {GUIDE}",
        "register_granule": f"cudaOccRegAllocationGranularity, {OCCUPANCY_HEADER}",
        "max_registers_per_lane": GUIDE,
        "shared_bytes_per_cu": f"{GUIDE}; {HOPPER_TUNING}",
        "shared_bytes_per_workgroup": f"{GUIDE}; {HOPPER_TUNING}",
        "shared_granule": f"cudaOccSMemAllocationGranularity, {OCCUPANCY_HEADER}",
        "shared_reserved": f"1 KB per block, {HOPPER_TUNING}",
        "shared_bytes_per_clock": f"32 banks of 4 bytes per clock, {GUIDE}",
        "l1_bytes_per_clock": f"derived: L1 shares the data path of shared memory, {HOPPER_TUNING}",
        "vector_ops_per_clock": THROUGHPUT,
        "transcendental_ops_per_clock": THROUGHPUT,
        "matrix_flops_per_clock": (
            f"derived: 989.4 dense bf16 and 1978.9 dense fp8 TFLOP/s over 132 SMs at 1830 MHz, {H100_PAPER}; "
            "the rate of wgmma, which mma.sync does not reach"
        ),
    },
)

SM_100 = replace(
    SM_90,
    name="sm_100",
    backend_arch=100,
    matrix_flops_per_clock={"bf16": 8192, "fp16": 8192, "e4m3fn": 16384},
    sources={
        **SM_90.sources,
        "simds_per_cu": f"cudaOccSubPartitionsPerMultiprocessor, {OCCUPANCY_HEADER}",
        "shared_bytes_per_cu": f"{GUIDE}; {BLACKWELL_TUNING}",
        "shared_bytes_per_workgroup": f"{GUIDE}; {BLACKWELL_TUNING}",
        "shared_reserved": f"1 KB per block, {BLACKWELL_TUNING}",
        "l1_bytes_per_clock": f"derived: L1 shares the data path of shared memory, {BLACKWELL_TUNING}",
        "matrix_flops_per_clock": (
            "derived: twice Hopper per SM, the power of two that puts 2.25 dense bf16 and 4.5 fp8 PFLOP/s "
            f"({DGX_B200_SHEET}) near the boost clock; the rate of tcgen05, which mma.sync does not reach"
        ),
    },
)

H100_SXM = Device(
    name="H100_SXM",
    architecture=SM_90,
    compute_units=132,
    chiplets=1,
    clock_hz=1.83e9,
    l2_bytes=50 << 20,
    last_level_bytes=0,
    last_level_bytes_per_s=0.0,
    l2_bytes_per_s=_A100_L2_BYTES_PER_CLOCK * 1.83e9,
    memory_bytes=80 << 30,
    memory_bytes_per_s=3.35e12,
    aliases=("H100", "H100_SXM5", "H100_80GB_HBM3"),
    sources={
        "compute_units": H100_PAPER,
        "chiplets": f"one die, {H100_PAPER}",
        "clock_hz": f"derived: 989.4 dense bf16 TFLOP/s over 132 SMs x 4096, {H100_PAPER}",
        "l2_bytes": H100_PAPER,
        "last_level_bytes": f"derived: L2 is the last level, {H100_PAPER}",
        "last_level_bytes_per_s": f"derived: L2 is the last level, {H100_PAPER}",
        "l2_bytes_per_s": f"derived: a ceiling, 5120 bytes per clock ({A100_PAPER}) at 1830 MHz",
        "memory_bytes": H100_PAPER,
        "memory_bytes_per_s": "NVIDIA H100 data sheet, https://www.nvidia.com/en-us/data-center/h100/",
    },
)

H200 = replace(
    H100_SXM,
    name="H200",
    l2_bytes=60 << 20,
    memory_bytes=141 << 30,
    memory_bytes_per_s=4.8e12,
    aliases=("H200_SXM", "H200_SXM5", "H200_141GB_HBM3e"),
    sources={
        **H100_SXM.sources,
        "compute_units": f"derived: the GH100 of H100 SXM with its TFLOP/s, {H200_SHEET}; {H100_PAPER}",
        "l2_bytes": (
            f"60 MB of L2 on the full GH100, {H100_PAPER}; the CUDA device properties of H200 report them all"
        ),
        "memory_bytes": H200_SHEET,
        "memory_bytes_per_s": H200_SHEET,
    },
)

B200 = Device(
    name="B200",
    architecture=SM_100,
    compute_units=148,
    chiplets=2,
    clock_hz=1.85e9,
    l2_bytes=126 << 20,
    last_level_bytes=0,
    last_level_bytes_per_s=0.0,
    l2_bytes_per_s=2 * _A100_L2_BYTES_PER_CLOCK * 1.85e9,
    memory_bytes=180 << 30,
    memory_bytes_per_s=8.0e12,
    aliases=("B200_SXM", "B200_180GB_HBM3e"),
    sources={
        "compute_units": f"74 per die, {B200_MEASURED}",
        "chiplets": f"two dies, {B200_MEASURED}",
        "clock_hz": f"derived: 2.25 dense bf16 PFLOP/s ({DGX_B200_SHEET}) over 148 SMs x 8192",
        "l2_bytes": B200_MEASURED,
        "last_level_bytes": f"derived: L2 is the last level, {B200_MEASURED}",
        "last_level_bytes_per_s": f"derived: L2 is the last level, {B200_MEASURED}",
        "l2_bytes_per_s": f"derived: a ceiling, 5120 bytes per clock ({A100_PAPER}) on each die at 1850 MHz",
        "memory_bytes": f"1440 GB over eight GPUs, {DGX_B200_SHEET}",
        "memory_bytes_per_s": f"64 TB/s over eight GPUs, {DGX_B200_SHEET}",
    },
)

ARCHITECTURES = (SM_90, SM_100)
DEVICES = (H100_SXM, H200, B200)
