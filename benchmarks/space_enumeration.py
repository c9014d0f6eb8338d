"""Seconds and megabytes to enumerate a space of about a million raw points, shaped like a decode op's.

python benchmarks/space_enumeration.py
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping

from m3gen.space import Choice, Constraint, Flag, Ordinal, Parameter, PowerOfTwo, Space, Value


def attention_like() -> Space:
    """Structure switches that open parameters, tile sizes and compiler options under a shared-memory rule."""
    parameters: list[Parameter] = [
        Choice("SPLIT", ("none", "kernel", "last_block"), "kernel"),
        PowerOfTwo("NUM_SPLITS", 2, 16, 4, active=lambda v: v["SPLIT"] != "none"),
        Choice("PARTIAL", ("fp32", "bf16"), "fp32", active=lambda v: v["SPLIT"] != "none"),
        PowerOfTwo("BLOCK_N", 16, 128, 64),
        Choice("HEADS", ("pad", "pack"), "pad"),
        Flag("TOGETHER", True),
        Flag("WHOLE", False),
        PowerOfTwo("num_warps", 1, 8, 4),
        Ordinal("num_stages", (1, 2, 3, 4), 2),
        Ordinal("waves_per_eu", (0, 1, 2, 3, 4), 0),
        Choice("matrix", (0, 16, 32), 16),
        PowerOfTwo("kpack", 1, 2, 1),
        Choice("modifier", ("", ".ca", ".cg"), ""),
    ]
    return Space(parameters, [_shared_memory(), _warps()])


def _shared_memory() -> Constraint:
    def holds(v: Mapping[str, Value]) -> bool:
        return int(v["BLOCK_N"]) * int(v["num_stages"]) * (512 if v["TOGETHER"] else 256) <= 65536

    return Constraint("lds", ("BLOCK_N", "num_stages", "TOGETHER"), holds, "over 64 KiB of LDS")


def _warps() -> Constraint:
    def holds(v: Mapping[str, Value]) -> bool:
        return int(v["num_warps"]) * 16 <= int(v["BLOCK_N"])

    return Constraint("warps", ("num_warps", "BLOCK_N"), holds, "a warp without a row")


def unconstrained() -> Space:
    """Ten to the sixth points, all valid, under one rule that reads the half of them."""
    parameters = [Ordinal(f"p{i}", tuple(range(10)), 0) for i in range(6)]
    return Space(parameters, [Constraint("sum", ("p3", "p4", "p5"), lambda v: sum(map(int, v.values())) >= 0, "")])


def main() -> None:
    for make in (attention_like, unconstrained):
        space = make()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        valid = len(space)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"{make.__name__}: {space.raw_size} raw, {valid} valid, {seconds:.2f} s, "
            f"peak {peak / 1024:.0f} MB ({(peak - before) / 1024:.0f} MB more), refused {dict(space.refused)}"
        )


if __name__ == "__main__":
    main()
