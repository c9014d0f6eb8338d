"""`Device`: one product of an architecture, with the numbers that differ between products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from m3gen.targets.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU product. Bytes, bytes per second and hertz throughout.

    Bandwidths are reads. Every number has an entry in `sources`: a public document or URL, or "derived: ..."
    with the derivation.
    """

    name: str  # "MI300X"
    architecture: Architecture
    compute_units: int
    chiplets: int  # XCDs (AMD) or dies (NVIDIA)
    clock_hz: float  # the engine or boost clock at which the data sheet states matrix FLOP/s
    l2_bytes: int  # all chiplets together
    last_level_bytes: int  # cache behind L2 (AMD Infinity Cache); 0 when there is none
    last_level_bytes_per_s: float  # 0 when there is none
    l2_bytes_per_s: float
    memory_bytes: int
    memory_bytes_per_s: float
    aliases: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(hash=False)  # field name -> public source

    @property
    def arch(self) -> str:
        return self.architecture.name

    def matrix_flops(self, dtype: str) -> float:
        """Dense matrix FLOP/s at `clock_hz` for a dtype name; `KeyError` when the matrix unit lacks it."""
        return self.architecture.matrix_flops_per_clock[dtype] * self.compute_units * self.clock_hz
