"""`SessionResult`: what a session ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from m3gen.evaluate.evaluation import Stage
from m3gen.evaluate.verification import Verification
from m3gen.search.progress import Progress
from m3gen.space import Config
from m3gen.spec import Problem

Ended = Literal["budget", "exhausted", "interrupted", "nothing to do"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnerRow:
    """The verified winner of one problem beside its baseline. Times in microseconds.

    `ratio` is baseline over winner; it and `baseline_us` are None when the field's config itself failed. Registers
    and occupancy are those of the launch that takes the most registers.
    """

    problem: Problem
    config: Config
    stage: Stage
    judge: str
    value_us: float
    low_us: float | None
    high_us: float | None
    baseline_us: float | None
    ratio: float | None
    limit: str
    registers: int
    waves_per_simd: float
    workgroups_per_cu: int
    verification: Verification
    field_config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """`rows` has no row for a problem none of whose finalists is known to be right."""

    rows: tuple[WinnerRow, ...]
    progress: Progress
    ended: Ended
