"""What was seen of machine code that ran in the emulator: its `Traces`, the `Dynamics` made of them, and the memory of
both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from m3gen.compiler.cache import replace_file
from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.dynamics import DYNAMICS, TRACE, UNITS, WITHOUT, Dynamics, Sample
from m3gen.evaluate.timing import AMD, Latencies
from m3gen.evaluate.trace import Trace, Traces
from m3gen.ops.base import Work
from m3gen.paths import cache_dir

if TYPE_CHECKING:
    from m3gen.emulator.profile import Profile

MOST_WORKGROUPS = 64  # that the emulator runs in step, and of a launch where none waits for the last of more
_MOST_COPIES = 4
_WHOLE = "whole"
# What can be left out of the simulation beside a unit: latencies that are then zero.
_LATENCIES = {
    "latency": ("near", "far", "coherent", "scalar", "shared", "matrix"),
    "conflicts": ("conflict",),
}
SIMULATED = (*UNITS, *_LATENCIES)


@dataclass(frozen=True, slots=True)
class Kept:
    """`extra` belongs into the facts of the kernel; `traces` are its `Traces` as bytes."""

    extra: dict[str, Any]
    traces: bytes


def name_of(facts: KernelFacts, trips: Sequence[float]) -> str:
    """Of traces: the machine code, what it is launched with, and the iterations of the runs. Configurations that
    compile to the same code share them; those that differ in their grids cannot all be sampled alike."""
    shape = f"{facts.num_warps}x{facts.shared_bytes}"
    return "-".join([facts.code_sha, shape, *(f"{one:g}" for one in trips), *whole(facts)])


def whole(facts: KernelFacts) -> tuple[str, ...]:
    """In the name of traces of a kernel that counts arrivals: of all that count, not of the first workgroups."""
    return (_WHOLE,) if facts.mix.get("atomic") else ()


def is_whole(name: str, facts: KernelFacts) -> bool:
    """Whether traces of that name have all that a prediction needs: before predict-amd-4 those of a kernel that counts
    arrivals may lack what the last to arrive does."""
    return not facts.mix.get("atomic") or name.endswith(f"-{_WHOLE}")


def trace_of(profile: Profile, work: Work) -> Trace:
    """Of the workgroup that executed most."""
    longest = max(
        (members[0] for members in profile.behaviours()),
        key=lambda number: sum(len(profile.trace(number, wave).instructions) for wave in range(profile.waves)),
    )
    return Trace.of(profile, longest, work.loop_trips, bool(work.streamed_bytes))


def simulated(traces: Traces, workgroups_per_cu: int, without: str = "") -> Dynamics:
    """What the constants of today make of traces. `without`: one of `SIMULATED` that takes no time."""
    assert AMD.latencies is not None
    latencies = replace(AMD.latencies, **dict.fromkeys(_LATENCIES.get(without, ()), 0.0))
    free = frozenset({UNITS[without]} if without in UNITS else ())
    found = (_sample(one, workgroups_per_cu, latencies, free) for one in traces.samples)
    return Dynamics(tuple(found), traces.seconds)


def _sample(trace: Trace, workgroups_per_cu: int, latencies: Latencies, free: frozenset[str]) -> Sample:
    """A kernel that streams nothing reads what the one before it wrote."""
    from m3gen.evaluate.waves import Workgroup, simulate

    one = Workgroup.of(trace)
    most = max(1, min(_MOST_COPIES, workgroups_per_cu))
    if not trace.streams:
        latencies = replace(latencies, far=latencies.coherent)
    runs = {copies: simulate(one, copies, latencies, free) for copies in sorted({1, min(2, most), most})}
    return Sample(trace.trips, {copies: run.clocks for copies, run in runs.items()}, runs[1].busy)


def recalled(name: str, facts: KernelFacts) -> Kept | None:
    """What an earlier run found out under a name; None when there was none, or when the file is not what it wrote.

    Clocks are kept by the version of the constants; those of another version are simulated anew.
    """
    try:
        data = _traces_file(name).read_bytes()
        traces = Traces.from_bytes(data)
    except (OSError, ValueError):
        return None
    try:
        found = json.loads(_dynamics_file(name).read_bytes())
        Dynamics.from_dict(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        found = _remember_dynamics(name, traces, facts)
    return Kept({DYNAMICS: found, TRACE: name}, data)


def remember(name: str, traces: Traces, facts: KernelFacts) -> Kept:
    """Keep it for `recalled`; nothing is kept where the cache cannot be written."""
    data = traces.to_bytes()
    with suppress(OSError):
        replace_file(_traces_file(name), data)
    return Kept({DYNAMICS: _remember_dynamics(name, traces, facts), TRACE: name}, data)


def ablated(kept: Kept, facts: KernelFacts) -> dict[str, Any]:
    """`kept.extra`, and what the simulation says without each of `SIMULATED`."""
    name = f"{kept.extra[TRACE]}-without"
    try:
        found = json.loads(_dynamics_file(name).read_bytes())
    except (OSError, ValueError):
        traces = Traces.from_bytes(kept.traces)
        found = {term: simulated(traces, facts.workgroups_per_cu, term).to_dict() for term in SIMULATED}
        with suppress(OSError):
            replace_file(_dynamics_file(name), json.dumps(found).encode())
    return {**kept.extra, WITHOUT: found}


def _remember_dynamics(name: str, traces: Traces, facts: KernelFacts) -> dict[str, Any]:
    found = simulated(traces, facts.workgroups_per_cu).to_dict()
    with suppress(OSError):
        replace_file(_dynamics_file(name), json.dumps(found).encode())
    return found


def _traces_file(name: str) -> Path:
    return cache_dir() / "traces" / f"{name}.z"


def _dynamics_file(name: str) -> Path:
    return cache_dir() / "dynamics" / AMD.version / f"{name}.json"
