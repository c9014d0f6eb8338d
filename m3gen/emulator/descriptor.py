"""`Descriptor`: what a kernel's descriptor says of the state that a wave starts in (LLVM, "User Guide for AMDGPU
Backend", sections "Kernel Descriptor" and "Initial Kernel Execution State")."""

from __future__ import annotations

import re
from dataclasses import dataclass

# In this order, those that are enabled, each with the scalar registers that it takes.
_USER_SGPRS = (
    ("private_segment_buffer", 4),
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """`user_sgprs`: (what, first register) of those that are enabled; `workgroup_ids`: which of x, y, z follow from
    `user_sgpr_count` on. `kernarg_preload`: (dwords, offset) of arguments that are loaded into registers behind the
    user's. `scratch_bytes` per lane, `lds_bytes` static."""

    user_sgprs: tuple[tuple[str, int], ...]
    user_sgpr_count: int
    workgroup_ids: tuple[bool, bool, bool]
    kernarg_bytes: int
    kernarg_preload: tuple[int, int]
    scratch_bytes: int
    lds_bytes: int
    fp32_denormals: int  # 0 flushes, 3 keeps
    fp16_denormals: int

    @classmethod
    def parse(cls, assembly: str) -> Descriptor:
        found = {
            name: int(value) for name, value in re.findall(r"\.amdhsa_(\w+) (\d+)\s*$", assembly, re.MULTILINE)
        }
        first, enabled = 0, []
        for name, count in _USER_SGPRS:
            if found.get(f"user_sgpr_{name}", 0):
                enabled.append((name, first))
                first += count
        return cls(
            user_sgprs=tuple(enabled),
            user_sgpr_count=found.get("user_sgpr_count", first),
            workgroup_ids=(
                bool(found.get("system_sgpr_workgroup_id_x", 1)),
                bool(found.get("system_sgpr_workgroup_id_y", 0)),
                bool(found.get("system_sgpr_workgroup_id_z", 0)),
            ),
            kernarg_bytes=found.get("kernarg_size", 0),
            kernarg_preload=(
                found.get("user_sgpr_kernarg_preload_length", 0),
                found.get("user_sgpr_kernarg_preload_offset", 0),
            ),
            scratch_bytes=found.get("private_segment_fixed_size", 0),
            lds_bytes=found.get("group_segment_fixed_size", 0),
            fp32_denormals=found.get("float_denorm_mode_32", 3),
            fp16_denormals=found.get("float_denorm_mode_16_64", 3),
        )
