"""`Timing`: the constants of the performance model, one set per vendor, each with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from m3gen.targets import Vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Cycles are engine cycles of one wave on its SIMD. Constants marked "assumed" are starting points that no
    public measurement has been fitted to; they order candidates, and the interval says how little they fix."""

    version: str
    launch_us: float
    memory_latency_us: float
    lookup_latency_us: float
    memory_efficiency: float
    vector_cycles: float
    transcendental_cycles: float
    scalar_cycles: float
    shared_cycles: float
    dependent_cycles: float
    wait_cycles: float
    barrier_cycles: float
    relative_interval: float


AMD = Timing(
    version="predict-amd-1",
    # The shortest nodes of a public HIP-graph measurement are 2.9 us, kernel included (vllm-project/vllm#55235).
    launch_us=2.0,
    memory_latency_us=0.8,  # assumed: loaded HBM latency; idle figures published for MI300X are about half
    lookup_latency_us=0.35,  # assumed: a hit in L2 or the last-level cache across the fabric
    # A published gfx942 kernel reaches 0.755 of peak (SemiAnalysisAI/InferenceX#1840, 405 of 536.5 us at 32K).
    memory_efficiency=0.80,
    vector_cycles=4,  # wave64 on a 16-lane SIMD: AMD CDNA3 ISA, vector ALU
    transcendental_cycles=16,  # quarter rate, same document
    scalar_cycles=4,  # a wave issues at most once in four cycles
    shared_cycles=4,  # issue only; bandwidth is a term of its own
    dependent_cycles=1,  # assumed: bubbles between dependent vector instructions
    wait_cycles=24,  # assumed: what an s_waitcnt still costs once its data has arrived
    barrier_cycles=32,  # assumed
    relative_interval=0.35,  # not validated yet: stated, not estimated
)

NVIDIA = Timing(
    version="predict-nvidia-1",
    launch_us=1.5,  # assumed: a dependent node of a CUDA graph
    memory_latency_us=0.65,  # assumed: loaded HBM latency
    lookup_latency_us=0.25,  # assumed: an L2 hit, far partition
    # Index-K streaming of vLLM's scorer on H200: 4.40 to 4.46 of 4.8 TB/s (ai-dynamo/aiconfigurator#1507).
    memory_efficiency=0.92,
    vector_cycles=1,  # 32 fp32 lanes per sub-partition: NVIDIA H100 white paper
    transcendental_cycles=8,  # 16 special-function lanes per SM: CUDA programming guide, throughput table
    scalar_cycles=1,
    shared_cycles=1,
    dependent_cycles=2,  # assumed: average bubble of in-order issue with short dependency chains
    wait_cycles=12,  # assumed
    barrier_cycles=24,  # assumed
    relative_interval=0.35,  # not validated yet: stated, not estimated
)

TIMINGS = {Vendor.AMD: AMD, Vendor.NVIDIA: NVIDIA}
