"""What an evaluation remembers of its launches, so that another judge can predict them from what the store holds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.dynamics import TRACE
from m3gen.evaluate.predict import Launched
from m3gen.ops.base import Work

# Of `Evaluation.environment`: the launches in order; the sha of the config whose machine code they are, too.
LAUNCHES, DUPLICATE_OF = "launches", "duplicate_of"


@dataclass(frozen=True, slots=True)
class Remembered:
    """As much of a `Launch` as predicting it needs."""

    kernel: str
    programs: int


def launched(
    launches: Sequence[Launched], facts: Sequence[KernelFacts], work: Sequence[Work]
) -> list[dict[str, Any]]:
    """Plain data for `LAUNCHES`: kernel, programs and iterations of each launch, the sha of its machine code, and the
    name of the traces, "" where nothing ran it."""
    return [
        {
            "kernel": launch.kernel,
            "programs": launch.programs,
            "trips": item.loop_trips,
            "code": fact.code_sha,
            "trace": fact.extra.get(TRACE, ""),
        }
        for launch, fact, item in zip(launches, facts, work, strict=True)
    ]


def identity(run: Sequence[Mapping[str, Any]]) -> Hashable:
    """Equal for launches that take the same time: the same code, as often."""
    return tuple((one["code"], one["programs"], one["trips"]) for one in run)
