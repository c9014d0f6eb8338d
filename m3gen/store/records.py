"""What the store gives back: `Record` and `Winner`."""

from __future__ import annotations

from dataclasses import dataclass

from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.verification import Verification
from m3gen.space.config import Config
from m3gen.spec import Problem


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
