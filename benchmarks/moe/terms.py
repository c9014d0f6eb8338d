"""Analytic terms of one layer for a whole pool: microseconds of the two GEMMs with tokens routed to experts.

A program computes one tile: `block_m` routed rows of one expert times `block_n` columns, in steps of `block_k`.
Programs fill the compute units in rounds of as many as fit there (m3gen/evaluate/predict.py); a last round that
fills only part of the device counts whole. Nothing here is fitted.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from m3gen.evaluate.timing import AMD, Timing
from m3gen.targets import Device

from .campaign import device
from .kernels import Column, Kernels
from .layer import Gemm, gemms, model, tokens_per_expert
from .tables import Entry

TERMS = ("matrix", "issue", "shared", "l1", "latency", "memory", "cache")
# Terms that are no unit's time, but how many programs there are and where they run.
SHAPES = ("occupancy", "rounds", "padding")


def layer_terms(entry: Entry, kernels: Kernels, off: Collection[str] = ()) -> dict[str, Column]:
    """Sums over both GEMMs, by name: `TERMS`, what they make together (`total`), and how the programs fall.

    `off` switches terms to nothing, for ablations: a name of TERMS is zero, "occupancy" puts one workgroup on a
    unit, "rounds" spreads the programs without a partial round, "padding" fills every tile with rows.
    """
    known = model(entry.experts, entry.intermediate)
    assert known
    counts = np.array(tokens_per_expert(entry.experts, known[1], entry.tokens))
    parts = [
        _Gemm(
            gemm, counts[counts > 0], kernels, device(entry.device), entry.campaign.element_bytes, AMD, off
        ).terms()
        for gemm in gemms(entry.experts, entry.intermediate, entry.tokens)
    ]
    return {name: parts[0][name] + parts[1][name] for name in parts[0]}


class _Gemm:
    def __init__(
        self,
        gemm: Gemm,
        rows: np.ndarray,  # of each expert that has any
        kernels: Kernels,
        device: Device,
        element_bytes: int,
        timing: Timing,
        off: Collection[str],
    ) -> None:
        self.gemm, self.rows, self.kernels, self.device = gemm, rows, kernels, device
        self.bytes, self.timing, self.off = element_bytes, timing, off
        self.steps = np.ceil(gemm.depth / kernels.block_k)
        self.across = np.ceil(gemm.columns / kernels.block_n)
        tiles = np.ceil(rows[:, None] / kernels.block_m[None, :]).sum(0)
        self.down = rows.sum() / kernels.block_m if "padding" in off else tiles
        self.programs = self.down * self.across

    def terms(self) -> dict[str, Column]:
        k, units = self.kernels, self.device.compute_units
        resident = np.ones(len(k)) if "occupancy" in self.off else np.maximum(1, k.workgroups)
        full, rest = np.divmod(self.programs, resident * units)
        last = np.ceil(rest / units)
        if "rounds" in self.off:
            full, last = self.programs / (resident * units), np.zeros(len(k))
        whole, part = self._round(resident), self._round(np.maximum(1, last))
        busy = {name: full * whole[name] + (last > 0) * part[name] for name in whole}
        memory, cache = self._memory_us()
        traffic = np.maximum(memory, cache)
        total = (traffic**4 + busy["time"] ** 4) ** 0.25
        even = self.programs / (resident * units) * whole["time"]
        return {
            **{name: busy[name] for name in TERMS if name in busy},
            "memory": memory,
            "cache": cache,
            "schedule": busy["time"],
            "total": total + self.timing.launch_us,
            "tail": np.maximum(0, busy["time"] - even),
            "programs": self.programs,
            "units": np.full(len(k), float(units)),
            "padded_rows": self.down * k.block_m,
        }

    def _round(self, resident: Column) -> dict[str, Column]:
        """Microseconds of `resident` programs on a CU: of each unit, and of the slowest of all."""
        k, arch, t = self.kernels, self.device.architecture, self.timing
        per_us = self.device.clock_hz / 1e6
        waves = resident * k.warps
        share = np.maximum(1, waves / arch.simds_per_cu)
        lanes = waves * arch.wave_size
        outside = k.outside * t.vector_cycles
        cycles = {
            "matrix": share * self.steps * k.matrix_cycles,
            "issue": share * (self.steps * k.vector * t.vector_cycles + outside),
            "shared": lanes * self.steps * k.shared_bytes / arch.shared_bytes_per_clock,
            "l1": lanes * self.steps * k.load_bytes / (arch.l1_bytes_per_clock / 2),  # half of the peak is reached
            "latency": self.steps * np.maximum(t.memory_latency_us * per_us, self._chain()) + outside,
        }
        times = {name: 0 * value if name in self.off else value / per_us for name, value in cycles.items()}
        ends = 0.0 if "latency" in self.off else 2 * t.memory_latency_us  # indices before, stores after
        times["latency"] = times["latency"] + ends
        times["time"] = np.max(list(times.values()), axis=0)
        return times

    def _chain(self) -> Column:
        """Cycles that one wave needs for a step alone, loads apart: every instruction in its order."""
        k, t = self.kernels, self.timing
        return (
            k.vector * (t.vector_cycles + t.dependent_cycles)
            + k.scalar * t.scalar_cycles
            + (k.shared_reads + k.shared_writes) * t.shared_cycles
            + k.matrix_cycles
            + k.waits * t.wait_cycles
            + k.barriers * t.barrier_cycles
        )

    def _memory_us(self) -> tuple[Column, Column]:
        """What must come from memory once, and what the programs ask of the caches: microseconds."""
        gemm, k = self.gemm, self.kernels
        weights = len(self.rows) * gemm.columns * gemm.depth * self.bytes
        activations = gemm.rows * gemm.depth * self.bytes + gemm.rows * gemm.columns * 2
        once = (weights + activations) / (self.device.memory_bytes_per_s * self.timing.memory_efficiency)
        asked = gemm.rows * self.across * gemm.depth + self.down * self.across * k.block_n * gemm.depth
        rate = self.device.l2_bytes_per_s
        memory, cache = np.full(len(k), once * 1e6), asked * self.bytes / rate * 1e6
        return (0 * memory if "memory" in self.off else memory), (0 * cache if "cache" in self.off else cache)
