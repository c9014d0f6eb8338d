"""Kernels that compile and are not predicted, as they spill where the predictor does not know what that costs."""

from __future__ import annotations

from collections.abc import Sequence

from m3gen.compiler.facts import KernelFacts
from m3gen.targets import Vendor, architecture

# Instructions that move spilled registers, of one kernel for NVIDIA. Its model charges each an issue slot and no
# latency, by which kernels with hundreds of them were predicted the fastest; what a few cost is lost in the interval.
MOST_SPILLS = 16


def spilling(facts: Sequence[KernelFacts]) -> str:
    """Why the kernels of a candidate are not predicted; "" where they are. On AMD the simulation runs the traffic of
    spills like any other."""
    for one in facts:
        if architecture(one.arch).vendor is Vendor.NVIDIA and one.vector_spills > MOST_SPILLS:
            return f"{one.vector_spills} loads and stores of spilled registers, whose latency the predictor lacks"
    return ""
