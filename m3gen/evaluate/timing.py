"""`Timing`: the constants of the performance model, one set per vendor, each with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from m3gen.targets import Vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Clocks of AMD's compute unit, for `waves.simulate`: from issue to data of an access that finds its way free."""

    near: float  # a vector load that a cache answers
    far: float  # one that memory answers
    coherent: float  # one of what other programs just wrote
    scalar: float  # a scalar load
    shared: float  # the LDS, passes apart
    matrix: float  # after the passes, until a dependent instruction may issue
    branch: float  # of an instruction that may branch
    conflict: float  # a pass of the LDS that a bank conflict adds; others take one


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Cycles are engine cycles of one wave on its SIMD. Constants marked "assumed" are starting points that no
    public measurement has been fitted to; they order candidates, and the interval says how little they fix. Those
    marked "fitted" name the points; `m3gen validate` shows these beside points that nothing was fitted to."""

    version: str
    launch_us: float
    memory_latency_us: float
    lookup_latency_us: float
    memory_efficiency: float
    vector_cycles: float
    transcendental_cycles: float
    convert_cycles: float
    scalar_cycles: float
    shared_cycles: float
    dependent_cycles: float
    wait_cycles: float
    barrier_cycles: float
    relative_interval: float
    latencies: Latencies | None = None


_LATENCIES = Latencies(
    near=500,  # assumed: an L2 hit
    far=1800,  # assumed: HBM through a loaded fabric
    coherent=700,  # assumed: the Infinity Cache
    scalar=250,  # assumed: scalar cache and L2
    shared=64,  # assumed
    matrix=16,  # assumed: write-back of a product
    branch=16,  # assumed
    # Fitted to the matrix structure of SemiAnalysisAI/InferenceX#1840 at 8K (308.8 us): its reads are 16 ways in
    # conflict. 1K and 32K are held out.
    conflict=2,
)

AMD = Timing(
    version="predict-amd-5",
    # The shortest nodes of a public HIP-graph measurement are 2.9 us, kernel included (vllm-project/vllm#55235).
    launch_us=2.0,
    memory_latency_us=0.8,  # assumed: loaded HBM latency; idle figures published for MI300X are about half
    lookup_latency_us=0.35,  # assumed: a hit in L2 or the last-level cache across the fabric
    # Fitted to the vector structure of SemiAnalysisAI/InferenceX#1840: 405 of 536.5 us at 32K. 1K and 8K held out.
    memory_efficiency=0.76,
    vector_cycles=4,  # wave64 on a 16-lane SIMD: AMD CDNA3 ISA, vector ALU
    transcendental_cycles=16,  # quarter rate, same document
    convert_cycles=4,  # as any vector instruction
    scalar_cycles=4,  # a wave issues at most once in four cycles
    shared_cycles=4,  # issue only; bandwidth is a term of its own
    dependent_cycles=1,  # assumed: bubbles between dependent vector instructions
    wait_cycles=24,  # assumed: what an s_waitcnt still costs once its data has arrived
    barrier_cycles=32,  # assumed
    # Twice what the public points of `m3gen validate` are off by at most (0.85 to 1.15).
    relative_interval=0.30,
    latencies=_LATENCIES,
)

NVIDIA = Timing(
    version="predict-nvidia-3",
    launch_us=1.5,  # assumed: a dependent node of a CUDA graph
    memory_latency_us=0.65,  # assumed: loaded HBM latency
    lookup_latency_us=0.25,  # assumed: an L2 hit, far partition
    # Index-K streaming of vLLM's scorer on H200: 4.40 to 4.46 of 4.8 TB/s (ai-dynamo/aiconfigurator#1507).
    memory_efficiency=0.92,
    vector_cycles=1,  # 32 fp32 lanes per sub-partition: NVIDIA H100 white paper
    transcendental_cycles=8,  # 16 special-function lanes per SM: CUDA programming guide, throughput table
    # Fitted by hand to the fp8 attend points of ai-dynamo/aiconfigurator#1507: 16 lanes per SM, like
    # transcendentals. No source was found for the rate of fp8 to fp16.
    convert_cycles=8,
    scalar_cycles=1,
    shared_cycles=1,
    dependent_cycles=2,  # assumed: average bubble of in-order issue with short dependency chains
    wait_cycles=12,  # assumed
    barrier_cycles=24,  # assumed
    relative_interval=0.30,  # as above
)

TIMINGS = {Vendor.AMD: AMD, Vendor.NVIDIA: NVIDIA}
