"""`KernelFacts`: what the machine code of one kernel says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFacts:
    """One loop body of the machine code. Counts are static instructions per iteration and wave.

    `label` names the header block, `depth` is 1 for outermost; a body excludes nothing: inner loops are their
    own entries and are part of their parents' counts too. `mix` is by unit, see `KernelFacts.mix`.
    """

    label: str
    depth: int
    instructions: int
    mix: Mapping[str, int]
    matrix_cycles: int  # matrix-unit cycles of one wave, one iteration
    load_bytes_per_lane: int  # global loads, masked or not
    load_widths: Mapping[str, int]  # width in bytes -> count
    shared_read_bytes_per_lane: int
    shared_write_bytes_per_lane: int
    waits: int  # wait points (s_waitcnt; LDGDEPBAR/DEPBAR)
    barriers: int
    branches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """Registers are per lane; bytes are bytes; counts are static instructions of the whole kernel.

    `mix` is by unit: matrix, vector, transcendental, convert, scalar, load, store, atomic, shared_read,
    shared_write, permute, spill, wait, barrier, branch, other.
    """

    kernel: str
    arch: str
    num_warps: int
    registers: int  # AMD: VGPR + AGPR; NVIDIA: registers per thread
    accumulation_registers: int  # AMD: AGPR; NVIDIA: 0
    scalar_registers: int  # AMD: SGPR; NVIDIA: uniform registers where known, else 0
    vector_spills: int  # AMD: spilled VGPRs; NVIDIA: LDL + STL instructions
    scalar_spills: int
    scratch_bytes: int  # per lane; NVIDIA: stack
    shared_bytes: int  # per workgroup
    workgroups_per_cu: int  # occupancy, after registers, shared memory and wave slots
    waves_per_simd: float
    occupancy_limit: str  # "registers", "shared", "waves" or "workgroups"
    instructions: int
    mix: Mapping[str, int]
    matrix_instructions: Mapping[str, int]  # mnemonic -> count
    matrix_cycles: int
    load_widths: Mapping[str, int]
    loops: tuple[LoopFacts, ...]  # largest first
    code_bytes: int
    compile_seconds: float
    compiler: str  # fingerprint, see compiler.fingerprint
    code_sha: str  # SHA-256 of the machine code without line information
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KernelFacts:
        """Inverse of `to_dict`."""
        values = dict(data)
        values["loops"] = tuple(LoopFacts(**loop) for loop in values["loops"])
        return cls(**values)
