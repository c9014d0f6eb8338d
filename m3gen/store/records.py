"""What the store gives back: values that stay when it is closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.verification import Verification
from m3gen.space.config import Config
from m3gen.spec import Problem, Status

GATE = "gate"  # where a verdict stands beside the stages of evaluations


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One evaluation of one problem. `created_at` is UTC in ISO 8601."""

    config: Config
    evaluation: Evaluation
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """The best verified candidate of one problem, with the evidence for both words.

    The machine code behind it is `Store.facts(key)` for each key of `evaluation.facts`; `compiler` is the
    fingerprint that the evaluation holds for, "" where it names none.
    """

    problem: Problem
    config: Config
    evaluation: Evaluation
    verification: Verification
    compiler: str
    created_at: str  # of the evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One session. `state` is how it ended, "running" for one that has not or was killed; times are UTC in
    ISO 8601. `problems` counts those it was asked for, of one architecture or op if these were asked for."""

    id: int
    state: str
    started_at: str
    seconds: float
    problems: int
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCount:
    """How many candidates of one op failed alike. `stage` is one of an evaluation, or `GATE`; `code` is the
    rule that refused them, if there is one, `example` the reason of one of them."""

    op: str
    arch: str
    stage: str
    status: Status
    code: str
    count: int
    example: str
