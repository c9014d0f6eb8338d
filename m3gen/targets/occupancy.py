"""How many workgroups of a kernel fit on one CU, and what stops one more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from m3gen.targets.architecture import Architecture

Limit = Literal["registers", "shared", "waves", "workgroups"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Workgroups resident on one CU; 0 when not even one can launch. `limit` names what allows no more."""

    workgroups_per_cu: int
    waves_per_simd: float  # averaged over the SIMDs of a CU
    limit: Limit


def occupancy(architecture: Architecture, registers_per_lane: int, shared_bytes: int, num_warps: int) -> Occupancy:
    """Occupancy of a kernel that takes `registers_per_lane` 32-bit registers (AMD: VGPR + AGPR),
    `shared_bytes` of LDS or shared memory per workgroup, and `num_warps` waves per workgroup.

    Registers are handed out per wave from one SIMD's file and shared memory per workgroup, both rounded up
    to their granules. A wave may land on any SIMD, so workgroups of fewer waves than SIMDs pack together.
    Between equal limits the one that no saving can lift is named first: waves, workgroups, registers, shared.
    Raises `ValueError` for negative figures.
    Sources: cuda_occupancy.h (cudaOccMaxBlocksPerSMRegsLimit, cudaOccMaxBlocksPerSMSmemLimit) and LLVM's
    AMDGPUSubtarget.cpp (getOccupancyWithWorkGroupSizes).
    """
    if registers_per_lane < 0 or shared_bytes < 0 or num_warps < 1:
        raise ValueError(
            f"registers_per_lane={registers_per_lane}, shared_bytes={shared_bytes}, num_warps={num_warps}: "
            "expected 0 or more, 0 or more, 1 or more"
        )
    fits: dict[Limit, int] = {
        "waves": _by_waves(architecture, num_warps),
        "workgroups": architecture.max_workgroups_per_cu,
        "registers": _by_registers(architecture, registers_per_lane, num_warps),
        "shared": _by_shared(architecture, shared_bytes),
    }
    limit = min(fits, key=lambda name: fits[name])
    waves = fits[limit] * num_warps
    return Occupancy(fits[limit], waves / architecture.simds_per_cu, limit)


def _by_waves(architecture: Architecture, num_warps: int) -> int:
    if num_warps * architecture.wave_size > architecture.max_threads_per_workgroup:
        return 0
    return architecture.simds_per_cu * architecture.max_waves_per_simd // num_warps


def _by_registers(architecture: Architecture, registers_per_lane: int, num_warps: int) -> int:
    if registers_per_lane > architecture.max_registers_per_lane:
        return 0
    per_wave = _round_up(max(1, registers_per_lane) * architecture.wave_size, architecture.register_granule)
    return architecture.simds_per_cu * (architecture.registers_per_simd // per_wave) // num_warps


def _by_shared(architecture: Architecture, shared_bytes: int) -> int:
    if shared_bytes > architecture.shared_bytes_per_workgroup:
        return 0
    per_workgroup = _round_up(shared_bytes + architecture.shared_reserved, architecture.shared_granule)
    if per_workgroup == 0:
        return architecture.max_workgroups_per_cu
    return architecture.shared_bytes_per_cu // per_workgroup


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule
