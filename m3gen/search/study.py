"""`Study`: what a session knows of one problem; `Group`: studies whose candidates share their code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.launched import LAUNCHES, identity
from m3gen.ops.base import Op
from m3gen.search.history import History
from m3gen.search.prior import NOTHING_KNOWN, Prior
from m3gen.search.progress import Incumbent
from m3gen.search.sampler import Sampler
from m3gen.search.structure import structures
from m3gen.space import Config, Space
from m3gen.spec import Problem

# A gain that is more than a tie, and how many evaluations a study without one stays hopeful: about as many as a
# candidate has neighbours.
GAIN, PATIENCE = 0.02, 24
NEAR_FLOOR = 1.1
_RUNG = {stage: rung for rung, stage in enumerate(Stage)}


@dataclass(eq=False)
class Study:
    """One problem under search: its space, its sampler, its evaluations in the order they became known.

    `floor_us`: what no candidate can be under. `prior`: what was known before. `tips`: configs that have proved
    themselves on a neighbour and come before the sampler's. `given`: what the field does under the other loads of the
    group, which it evaluates too and did not ask for.
    """

    problem: Problem
    space: Space
    field: Config
    sampler: Sampler
    floor_us: float = 0.0
    prior: Prior = NOTHING_KNOWN
    tips: list[Config] = dataclasses.field(default_factory=list)
    given: frozenset[Config] = frozenset()
    evaluations: dict[Config, Evaluation] = dataclasses.field(default_factory=dict)
    pending: set[Config] = dataclasses.field(default_factory=set)
    exhausted: bool = False
    _observed: dict[int, float | None] = dataclasses.field(default_factory=dict)
    _best: Config | None = None
    _codes: dict[Hashable, Config] = dataclasses.field(default_factory=dict)
    _for_nothing: set[Config] = dataclasses.field(default_factory=set)
    _wrong: set[Config] = dataclasses.field(default_factory=set)
    _gained_at: int = 0
    _turned: bool = False

    def record(self, config: Config, evaluation: Evaluation) -> bool:
        """Take note of an evaluation; it is pending no longer. Whether it is the best from now on.

        One of a lower rung than what is known says nothing new. One of the prior rung costs nothing.
        """
        self.pending.discard(config)
        known = self.evaluations.get(config)
        if known is not None and _RUNG[known.stage] > _RUNG[evaluation.stage]:
            return False
        self.evaluations[config] = evaluation
        if evaluation.stage is Stage.PRIOR:
            self._for_nothing.add(config)
        else:
            self._for_nothing.discard(config)
        if config in self.space:
            self._observed[self.space.id(config)] = evaluation.value_us if evaluation.ok else None
        if evaluation.may_win and LAUNCHES in evaluation.environment:
            self._codes.setdefault(identity(evaluation.environment[LAUNCHES]), config)
        if not evaluation.may_win or (self.limit_us is not None and _value(evaluation) >= self.limit_us):
            return False
        if self.limit_us is None or _value(evaluation) * (1 + GAIN) < self.limit_us:
            self._gained_at = self.begun
        self._best = config
        return True

    def disqualify_best(self) -> None:
        """The best so far is known to be wrong: the next one is what others have to get under."""
        assert self._best is not None
        self._wrong.add(self._best)
        right = (config for config, one in self.evaluations.items() if one.may_win and config not in self._wrong)
        self._best = min(right, key=lambda config: _value(self.evaluations[config]), default=None)

    @property
    def begun(self) -> int:
        """Evaluations recorded or under way; left out are those that cost nothing and those that were given."""
        given = sum(self.knows(config) and config not in self._for_nothing for config in self.given)
        return len(self.evaluations) - len(self._for_nothing) + len(self.pending) - given

    @property
    def limit_us(self) -> float | None:
        """What a candidate has to get under: the time of the best so far."""
        return None if self._best is None else _value(self.evaluations[self._best])

    @property
    def hopeful(self) -> bool:
        """Whether more evaluations are likely to gain: not within a tenth of the floor, and a gain not long ago."""
        if self.limit_us is not None and self.limit_us <= NEAR_FLOOR * self.floor_us:
            return False
        return self.begun - self._gained_at < PATIENCE

    def release(self, config: Config) -> None:
        """It is pending no longer and open to be asked for, also where nothing else was left."""
        self.pending.discard(config)
        self.exhausted = False

    def twin(self, run: Sequence[Mapping[str, Any]]) -> Config | None:
        """The first config that was found OK with these launches."""
        return self._codes.get(identity(run))

    def departures(self, config: Config) -> int:
        """How many values are not those of the field's config."""
        return sum(self.field.get(name) != value for name, value in config.items())

    def admits(self, config: Config) -> bool:
        """Whether it may win here: one of a space that had other parameters may render the same text, and no table
        would take it. What the field does is the yardstick, in the space or not."""
        return config in self.space or config == self.field

    def knows(self, config: Config) -> bool:
        return config in self.evaluations or config in self.pending

    def ask(self) -> Config | None:
        """A tip or the sampler's next candidate; None when the space is exhausted, which `release` may undo. When all
        that the prior trusts is known, the best of it gives tips of other structures."""
        if (
            not self._turned
            and self._best is not None
            and all(one in self.evaluations for one in self.prior.seeds)
        ):
            self._turned = True
            self.tips += structures(self._best, self.space)
        while self.tips:
            tip = self.tips.pop(0)
            if not self.knows(tip):
                return tip
        pending = {self.space.id(config) for config in self.pending if config in self.space}
        ids = self.sampler.ask(self.space, History(self._observed, pending, self.prior), 1)
        self.exhausted = not ids
        return self.space.config(ids[0]) if ids else None

    @property
    def baseline_us(self) -> float | None:
        """Microseconds of the field's config; None when it failed or is not known yet."""
        found = self.evaluations.get(self.field)
        return found.value_us if found is not None and found.ok else None

    @property
    def incumbent(self) -> Incumbent | None:
        """The best candidate so far, verified or not."""
        if self._best is None:
            return None
        best = self.evaluations[self._best]
        return Incumbent(self._best, _value(best), self.baseline_us, best.stage)


@dataclass(eq=False)
class Group:
    """Studies of one signature: their problems differ in the load only, so one compile serves them all."""

    op: Op
    signature: str
    studies: list[Study]
    source_sha: Callable[[Op, Problem, Config], str]
    _sources: dict[Config, str] = dataclasses.field(default_factory=dict)

    def source(self, config: Config) -> str:
        """SHA of the candidate's source; "" when it does not render, which compiling will then say."""
        if config not in self._sources:
            try:
                self._sources[config] = self.source_sha(self.op, self.studies[0].problem, config)
            except Exception:
                self._sources[config] = ""
        return self._sources[config]


def _value(evaluation: Evaluation) -> float:
    assert evaluation.value_us is not None  # every OK evaluation that is recorded has a value
    return evaluation.value_us
