"""`Evaluation`: what one rung found out about one candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from m3gen.spec import Status


class Stage(StrEnum):
    """The rungs of the ladder, cheapest first.

    A candidate that goes no further than PRIOR (nothing compiled) or ANALYTIC (compiled, not run though it could be)
    has a time that teaches a sampler and wins nothing: see `evaluate.rungs`.
    """

    STATIC = "static"
    PRIOR = "prior"
    ANALYTIC = "analytic"
    PREDICTED = "predicted"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One row of the store. Times are microseconds for the whole op, all its launches together.

    `value_us` is None unless `status` is OK. `low_us` and `high_us` bound a prediction (equal to the quartiles
    of `samples_us` once measured). `terms` itemises the value in microseconds; `limit` names what bounds it
    ("memory", "issue", ...). `judge` is the version of what judged: the predictor's ("predict-amd-1") or the
    measuring protocol's. `reason` says in one line why a failure failed, `code` the rule that refused it.
    """

    stage: Stage
    status: Status
    judge: str
    value_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    limit: str = ""
    code: str = ""
    reason: str = ""
    samples_us: tuple[float, ...] = ()
    seconds: float = 0.0  # what the evaluation cost, compile included
    facts: tuple[str, ...] = ()  # keys of the KernelFacts of each launch, in launch order
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    @property
    def may_win(self) -> bool:
        """OK, and on one of the last rungs."""
        return self.ok and self.stage in (Stage.PREDICTED, Stage.MEASURED)
