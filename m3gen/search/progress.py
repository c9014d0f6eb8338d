"""`Progress`: where a session stands, for whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from m3gen.evaluate.evaluation import Stage
from m3gen.space import Config
from m3gen.spec import Problem, Status

Phase = Literal["search", "verify", "done"]


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best candidate of one problem so far. `baseline_us` is None while the field's config has no value."""

    config: Config
    value_us: float
    baseline_us: float | None
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A picture of a session at one moment.

    `refused`: raw points that rules cut, by code, equal spaces counted once. `evaluated` and `failed` (by
    status, the gate's verdicts included) count what is known of the problems, `stored` how much of it the
    session found in the store; `predicted` are those that have a value of the last rung, `stopped` those that have
    one of a lower rung and could not win, by rung. `compiled` and `cached` count
    launches whose machine code this session made or found made. `verified`: candidates that passed the gate.
    `remaining_s` is None outside the search and without a budget in seconds.
    """

    phase: Phase
    refused: Mapping[str, int]
    space_sizes: Mapping[Problem, int]
    evaluated: int
    stored: int
    compiled: int
    cached: int
    predicted: int
    verified: int
    failed: Mapping[Status, int]
    best: Mapping[Problem, Incumbent]
    elapsed_s: float
    remaining_s: float | None
    stopped: Mapping[Stage, int] = field(default_factory=dict)


class Listener(Protocol):
    """What is told how a session gets on, in the thread that runs it, several times a second."""

    def update(self, progress: Progress) -> None: ...
