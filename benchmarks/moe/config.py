"""`MoeConfig`: what a table's entry chooses about the kernel's machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Every shipped entry for these devices has them so.
NUM_STAGES = 2
WAVES_PER_EU = 0


@dataclass(frozen=True, slots=True, order=True)
class MoeConfig:
    """Tile of the output (`block_m` rows of tokens, `block_n` columns), step in K, and compile options.

    `nonkdim` 0 and `kpack` 1 are Triton's defaults, which fp8 tables leave in place. GROUP_SIZE_M is left out:
    it orders the programs and touches no instruction of the loop.
    """

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    nonkdim: int
    kpack: int

    @property
    def tile(self) -> tuple[int, int, int]:
        return self.block_m, self.block_n, self.block_k

    @classmethod
    def of_entry(cls, entry: Mapping[str, Any]) -> MoeConfig:
        """From the JSON of a table; `ValueError` when it uses what the ranked space leaves out."""
        stages, waves = entry.get("num_stages", NUM_STAGES), entry.get("waves_per_eu", WAVES_PER_EU)
        if (stages, waves) != (NUM_STAGES, WAVES_PER_EU):
            raise ValueError(
                f"num_stages {stages} and waves_per_eu {waves}: expected {NUM_STAGES} and {WAVES_PER_EU}"
            )
        blocks = (entry[f"BLOCK_SIZE_{side}"] for side in "MNK")
        return cls(*blocks, entry["num_warps"], entry.get("matrix_instr_nonkdim", 0), entry.get("kpack", 1))
