"""`Verification`: what the correctness gate found out about one candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from m3gen.spec import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case, one seed. Errors are against the float64 reference over all rows; `row_rms` is the worst row's
    RMS of the error over the RMS of its reference. `past_rounding` is as in `Tolerance`, None where it has no
    bound."""

    name: str
    grid: str
    status: Status
    row_rms: float
    mean_abs: float
    max_abs: float
    past_rounding: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """`on` is what ran the kernel: "interpreter", "machine-code" or "gpu". `reason` names the first failure;
    `environment["compiler"]` is the fingerprint of what made the machine code, where that was run."""

    status: Status
    on: str
    source_sha: str
    cases: tuple[CaseResult, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status is Status.OK
