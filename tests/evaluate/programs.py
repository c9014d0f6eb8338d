"""Workgroups of small programs, for the simulation: written as assembly, run once, their traces taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from m3gen.emulator.descriptor import Descriptor
from m3gen.emulator.profile import Profile
from m3gen.evaluate.timing import Latencies
from m3gen.evaluate.trace import Trace
from m3gen.evaluate.waves import Simulated, Workgroup, simulate
from tests.emulator.harness import machine

# Numbers that can be told apart in a sum.
LATENCIES = Latencies(near=500, far=2000, coherent=900, scalar=300, shared=70, matrix=30, branch=20, conflict=3)
END = 4  # clocks of the s_endpgm that closes every program


def workgroup(text: str, waves: int = 1, arch: str = "gfx942") -> Workgroup:
    return Workgroup.of(trace(text, waves, arch))


def trace(text: str, waves: int = 1, arch: str = "gfx942", trips: float = 1, streams: bool = True) -> Trace:
    """Of a program with the address of 64 KB in s[0:1] and as much LDS, the lane's number in v0 (64 more in each
    further wave)."""
    one = machine(f"{text.strip()}\ns_endpgm", arch, profile=True, late=False)
    region = one.memory.register_array("memory", np.zeros(1 << 16, np.uint8))
    one.program = replace(one.program, descriptor=Descriptor.parse(".amdhsa_user_sgpr_kernarg_segment_ptr 1\n"))
    recording = one.launch((1, 1, 1), waves, 1 << 16, region.start)
    assert recording is not None
    profile = Profile("test", arch, (1, 1, 1), waves, one.program, recording, 0.0)
    return Trace.of(profile, 0, trips, streams)


def run(text: str, waves: int = 1, copies: int = 1, **latencies: float) -> Simulated:
    return simulate(workgroup(text, waves), copies, replace(LATENCIES, **latencies))


def clocks(text: str, waves: int = 1, copies: int = 1, **latencies: float) -> float:
    """Without the end of the program."""
    return run(text, waves, copies, **latencies).clocks - END
