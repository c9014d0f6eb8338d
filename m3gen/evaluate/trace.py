"""`Trace`: what the waves of one workgroup executed in a run. No constant of the model is in it."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m3gen.emulator.profile import Profile

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class WaveTrace:
    """One wave. `runs`: (first, how many) of `Trace.code` that follow each other. `memory`: (position, lines of memory,
    LDS passes, conflicts among them) of the instructions that touched any."""

    runs: tuple[tuple[int, int], ...]
    memory: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """`code` is the text of every instruction of the program that was executed, in address order. `trips` are the
    iterations of the run, `streams` says whether its launch reads what no launch before it wrote."""

    arch: str
    trips: float
    streams: bool
    code: tuple[str, ...]
    waves: tuple[WaveTrace, ...]

    @classmethod
    def of(cls, profile: Profile, workgroup: int, trips: float, streams: bool) -> Trace:
        import numpy as np

        found = [profile.trace(workgroup, wave) for wave in range(profile.waves)]
        executed = np.unique(np.concatenate([one.instructions for one in found]))
        waves = []
        for one in found:
            numbers = np.searchsorted(executed, one.instructions)
            starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
            lengths = np.diff(starts, append=len(numbers))
            values = one.values[:, (1, 3, 4)]
            places = np.flatnonzero(values.any(axis=1))
            memory = np.concatenate([places[:, None], values[places]], axis=1)
            runs = np.stack([numbers[starts], lengths], axis=1)
            waves.append(WaveTrace(_rows(runs.tolist()), _rows(memory.tolist())))
        lines = profile.program.instructions
        code = tuple(lines[number].text for number in executed.tolist())
        return cls(profile.arch, trips, streams, code, tuple(waves))

    def to_dict(self) -> dict[str, Any]:
        """Positions as the distance from the one before: loops repeat, and what repeats is compressed well."""
        return {
            "arch": self.arch,
            "trips": self.trips,
            "streams": self.streams,
            "code": list(self.code),
            "waves": [{"runs": wave.runs, "memory": _apart(wave.memory)} for wave in self.waves],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """Inverse of `to_dict`."""
        waves = tuple(WaveTrace(_rows(wave["runs"]), _together(wave["memory"])) for wave in data["waves"])
        return cls(data["arch"], data["trips"], data["streams"], tuple(data["code"]), waves)


@dataclass(frozen=True, slots=True)
class Traces:
    """Of a kernel at one or two loads, fewer iterations first; `seconds` that running it took."""

    samples: tuple[Trace, ...]
    seconds: float

    def to_bytes(self) -> bytes:
        """Compressed JSON."""
        data = {"format": _FORMAT, "seconds": self.seconds, "samples": [one.to_dict() for one in self.samples]}
        return lzma.compress(json.dumps(data, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, data: bytes) -> Traces:
        """Inverse of `to_bytes`; `ValueError` for anything else."""
        try:
            found = json.loads(lzma.decompress(data))
            if found["format"] != _FORMAT:
                raise ValueError(f"format {found['format']}, expected {_FORMAT}")
            return cls(tuple(Trace.from_dict(one) for one in found["samples"]), found["seconds"])
        except (lzma.LZMAError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no traces: {type(error).__name__}: {error}") from None


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Any, ...]:
    return tuple(tuple(row) for row in rows)


def _apart(memory: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    found, before = [], 0
    for position, lines, passes, conflicts in memory:
        found.append((position - before, lines, passes, conflicts))
        before = position
    return found


def _together(memory: Sequence[Sequence[int]]) -> tuple[tuple[int, int, int, int], ...]:
    found, position = [], 0
    for distance, lines, passes, conflicts in memory:
        position += distance
        found.append((position, lines, passes, conflicts))
    return tuple(found)
