"""The prior: microseconds of a candidate from its bytes, iterations and launches alone, before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from m3gen.evaluate.timing import TIMINGS, Timing
from m3gen.ops.base import Work
from m3gen.targets import Device


def prior_us(work: Sequence[Work], device: Device) -> float:
    """What `predict` makes of the launches when their instructions take no time and every program finds a compute unit:
    each costs its launch, and its bytes or the waits for memory of one program, whichever is longer."""
    timing = TIMINGS[device.architecture.vendor]
    return sum(timing.launch_us + max(memory_us(one, device, timing), _waits_us(one, timing)) for one in work)


def least_us(work: Sequence[Work], device: Device) -> float:
    """The same without the waits and for one launch: what no schedule of these bytes is predicted under."""
    timing = TIMINGS[device.architecture.vendor]
    return timing.launch_us + sum(memory_us(one, device, timing) for one in work if one.streamed_bytes)


def memory_us(work: Work, device: Device, timing: Timing) -> float:
    """Streamed bytes at the memory's achievable rate, the others at the rate of the cache behind L2."""
    cached = work.read_bytes - work.streamed_bytes + work.written_bytes
    cache_rate = device.last_level_bytes_per_s or device.l2_bytes_per_s
    streamed = work.streamed_bytes / (device.memory_bytes_per_s * timing.memory_efficiency)
    return (streamed + cached / cache_rate) * 1e6


def _waits_us(work: Work, timing: Timing) -> float:
    """A kernel that streams nothing finds its data in a cache, all at once."""
    if not work.streamed_bytes:
        return 0.0
    lookups = work.lookups * timing.lookup_latency_us
    if not work.loads_ahead:
        return work.loop_trips * (lookups + work.load_waits * timing.memory_latency_us)
    return work.loop_trips * (lookups + timing.memory_latency_us) / work.loads_ahead
