"""What was seen of machine code that ran in the emulator, for `Dynamics`: the sample of a run, and its memory."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.dynamics import Sample
from m3gen.evaluate.timing import AMD, TIMINGS
from m3gen.ops.base import Work
from m3gen.paths import cache_dir
from m3gen.targets import Vendor

if TYPE_CHECKING:
    from m3gen.emulator.profile import Profile

MOST_WORKGROUPS = 64  # that the emulator runs in step
_MOST_COPIES = 4


def sample_of(profile: Profile, work: Work, facts: KernelFacts) -> Sample:
    """Of the workgroup that executed most. A kernel that streams nothing reads what the one before it wrote."""
    from m3gen.evaluate.waves import Workgroup, simulate

    longest = max(
        (members[0] for members in profile.behaviours() if members[0] < MOST_WORKGROUPS),
        key=lambda number: sum(len(profile.trace(number, wave).instructions) for wave in range(profile.waves)),
    )
    one = Workgroup.of(profile, longest)
    most = max(1, min(_MOST_COPIES, facts.workgroups_per_cu))
    assert AMD.latencies is not None
    latencies = AMD.latencies if work.streamed_bytes else replace(AMD.latencies, far=AMD.latencies.coherent)
    runs = {copies: simulate(one, copies, latencies) for copies in sorted({1, min(2, most), most})}
    return Sample(work.loop_trips, {copies: run.clocks for copies, run in runs.items()}, runs[1].busy)


def recalled(name: str) -> dict[str, Any] | None:
    """What was remembered under a name, by this version of the constants; None when nothing is."""
    with suppress(OSError, ValueError):
        found = json.loads((_folder() / f"{name}.json").read_text())
        return found if isinstance(found, dict) else None
    return None


def remember(name: str, value: dict[str, Any]) -> None:
    """Keep it for `recalled`."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.{time.monotonic_ns()}"
    partial.write_text(json.dumps(value))
    partial.replace(folder / f"{name}.json")


def _folder() -> Path:
    return cache_dir() / "dynamics" / TIMINGS[Vendor.AMD].version
