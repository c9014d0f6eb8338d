"""`Kernels`: the facts of a pool as columns, per step of BLOCK_K and wave, one row a configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from m3gen.compiler.facts import KernelFacts, LoopFacts
from m3gen.spec import Status

from .compiling import Compiled
from .config import MoeConfig

Column: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"

_VECTOR = ("vector", "convert", "permute", "load", "store", "spill", "atomic")


@dataclass(frozen=True, slots=True)
class Kernels:
    """Counts are of one wave in one step of BLOCK_K; bytes are per lane. `outside` counts the instructions
    around the loop; `unroll` is how many steps the machine code's loop takes at once."""

    configs: tuple[MoeConfig, ...]
    codes: tuple[str, ...]  # equal for equal machine code
    columns: dict[str, Column]

    def __getattr__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self.configs)


def kernels(found: Iterable[Compiled], element_bytes: int) -> Kernels:
    """Of those that compile and can be launched."""
    good = {one.config: one.facts for one in found if one.status is Status.OK and one.facts}
    configs = tuple(sorted(good))
    rows = [_row(config, good[config], element_bytes) for config in configs]
    columns = {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    return Kernels(configs, tuple(good[config].code_sha for config in configs), columns)


def _row(config: MoeConfig, facts: KernelFacts, element_bytes: int) -> dict[str, float]:
    loop = max(facts.loops, key=lambda one: (one.matrix_cycles, one.load_bytes_per_lane))
    unroll = _unroll(config, loop, element_bytes)
    mix = Counter(loop.mix)
    return {
        "block_m": float(config.block_m),
        "block_n": config.block_n,
        "block_k": config.block_k,
        "warps": config.num_warps,
        "nonkdim": config.nonkdim,
        "kpack": config.kpack,
        "workgroups": facts.workgroups_per_cu,
        "waves": facts.waves_per_simd,
        "registers": facts.registers,
        "accumulation": facts.accumulation_registers,
        "scalars": facts.scalar_registers,
        "spills": facts.vector_spills,
        "lds": facts.shared_bytes,
        "unroll": unroll,
        "outside": facts.instructions - loop.instructions,
        "instructions": loop.instructions / unroll,
        "matrix_cycles": loop.matrix_cycles / unroll,
        "matrix_count": mix["matrix"] / unroll,
        "vector": sum(mix[unit] for unit in _VECTOR) / unroll,
        "valu": (mix["vector"] + mix["convert"] + mix["permute"]) / unroll,
        "scalar": (mix["scalar"] + mix["branch"]) / unroll,
        "loads": mix["load"] / unroll,
        "load_bytes": loop.load_bytes_per_lane / unroll,
        "shared_reads": mix["shared_read"] / unroll,
        "shared_writes": mix["shared_write"] / unroll,
        "shared_bytes": (loop.shared_read_bytes_per_lane + loop.shared_write_bytes_per_lane) / unroll,
        "waits": loop.waits / unroll,
        "barriers": loop.barriers / unroll,
        "spilled": mix["spill"] / unroll,
    }


def _unroll(config: MoeConfig, loop: LoopFacts, element_bytes: int) -> int:
    """Steps per iteration of the machine code's loop, from the bytes it loads.

    Matrix instructions do not tell: waves that find no part of the tile of their own repeat the work of others.
    """
    lanes = config.num_warps * 64
    per_lane = sum(max(1, side * config.block_k / lanes) for side in (config.block_m, config.block_n))
    return max(1, round(loop.load_bytes_per_lane / (per_lane * element_bytes)))
