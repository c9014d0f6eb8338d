"""What was seen of machine code that ran in the emulator, for `Dynamics`: the sample of a run, and its memory."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from m3gen.compiler.cache import replace_file
from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.dynamics import DYNAMICS, Dynamics, Sample
from m3gen.evaluate.timing import AMD
from m3gen.ops.base import Work
from m3gen.paths import cache_dir

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
    """What an earlier run found out under a name and this version of the constants; None when there was none, or when
    the file is not what it wrote."""
    try:
        found: dict[str, Any] = json.loads(_file(name).read_bytes())
        Dynamics.from_dict(found[DYNAMICS])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found


def remember(name: str, value: dict[str, Any]) -> None:
    """Keep it for `recalled`; nothing is kept where the cache cannot be written."""
    with suppress(OSError):
        replace_file(_file(name), json.dumps(value).encode())


def _file(name: str) -> Path:
    return cache_dir() / "dynamics" / AMD.version / f"{name}.json"
