"""How well samplers search recorded spaces: a table for a terminal, and the same for machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.replay.outcome import Outcome
from m3gen.report import layout


def report(found: Outcome, notes: Sequence[str]) -> RenderableType:
    """A row per sampler, the best first; a column per space, and their mean. Under it, what holds for all."""
    order = sorted(found.samplers, key=lambda sampler: -found.of(sampler).score)
    rows = [_row(found, sampler) for sampler in order]
    columns = ("sampler", *(f">{space}" for space in found.spaces), ">mean", ">+-", ">within 5 %", ">s/run")
    return Group(
        layout.title("Score: 0 is random search, 1 is the optimum at once"),
        layout.table(columns, rows),
        Text(""),
        *map(Text, notes),
    )


def _row(found: Outcome, sampler: str) -> tuple[str, ...]:
    mean = found.of(sampler)
    spaces = (f"{found.of(sampler, space).score:.2f}" for space in found.spaces)
    error = "" if math.isnan(mean.error) else f"{mean.error:.3f}"
    return (sampler, *spaces, f"{mean.score:.3f}", error, f"{mean.within:.0%}", f"{mean.seconds:.1f}")


def report_object(found: Outcome, notes: Sequence[str]) -> dict[str, Any]:
    """All of it as plain data: `cells` per space and sampler, `samplers` their means over the spaces."""
    return {
        "notes": list(notes),
        "cells": [_plain(asdict(cell)) for cell in found.cells],
        "samplers": [_plain(asdict(found.of(sampler))) for sampler in found.samplers],
    }


def _plain(cell: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: the error of a single run is null."""
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in cell.items()}
