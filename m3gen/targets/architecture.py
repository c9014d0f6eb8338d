"""`Architecture`: what the compiler and the performance model need to know of an instruction set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Vendor(StrEnum):
    AMD = "amd"
    NVIDIA = "nvidia"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One instruction set. "CU" stands for a compute unit (AMD) or a streaming multiprocessor (NVIDIA),
    "SIMD" for a SIMD (AMD) or a sub-partition (NVIDIA), "wave" for a wave or a warp.

    Every numeric field has an entry in `sources`: a public document or URL, or "derived: ..." with the
    derivation.
    """

    name: str  # "gfx942", "sm_90"
    vendor: Vendor
    backend: str  # Triton's backend: "hip" or "cuda"
    backend_arch: str | int  # what triton's GPUTarget takes: "gfx942" or 90
    wave_size: int  # lanes
    simds_per_cu: int
    max_waves_per_simd: int
    max_workgroups_per_cu: int
    max_threads_per_workgroup: int
    registers_per_simd: int  # 32-bit registers
    register_granule: int  # 32-bit registers per wave, the unit of allocation
    max_registers_per_lane: int  # 32-bit registers (AMD: VGPR + AGPR)
    shared_bytes_per_cu: int  # LDS or shared memory that workgroups can share
    shared_bytes_per_workgroup: int  # most that one workgroup may ask for
    shared_granule: int  # bytes
    shared_reserved: int  # bytes the system takes per workgroup
    shared_bytes_per_clock: int  # per CU
    l1_bytes_per_clock: int  # per CU, vector memory
    vector_ops_per_clock: int  # fp32 FMA lanes per CU and clock (AMD: packed v_pk_fma_f32 does two a lane)
    transcendental_ops_per_clock: int  # exp2, rcp, ... lanes per CU and clock
    matrix_flops_per_clock: Mapping[str, int] = field(hash=False)  # dense FLOP per CU, by dtype name
    fp8: str  # the dialect of its fp8: "e4m3fnuz" or "e4m3fn"
    sources: Mapping[str, str] = field(hash=False)  # field name -> public source
