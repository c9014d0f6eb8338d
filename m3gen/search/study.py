"""`Study`: what a session knows of one problem; `Group`: studies whose candidates share their code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.launched import LAUNCHES, identity
from m3gen.ops.base import Op
from m3gen.search.history import History
from m3gen.search.progress import Incumbent
from m3gen.search.sampler import Sampler
from m3gen.space import Config, Space
from m3gen.spec import Problem


@dataclass(eq=False)
class Study:
    """One problem under search: its space, its sampler, its evaluations in the order they became known."""

    problem: Problem
    space: Space
    field: Config
    sampler: Sampler
    evaluations: dict[Config, Evaluation] = dataclasses.field(default_factory=dict)
    pending: set[Config] = dataclasses.field(default_factory=set)
    exhausted: bool = False
    _observed: dict[int, float | None] = dataclasses.field(default_factory=dict)
    _best: Config | None = None
    _codes: dict[Hashable, Config] = dataclasses.field(default_factory=dict)

    def record(self, config: Config, evaluation: Evaluation) -> None:
        """Take note of an evaluation; it is pending no longer."""
        self.pending.discard(config)
        self.evaluations[config] = evaluation
        if config in self.space:
            self._observed[self.space.id(config)] = evaluation.value_us if evaluation.ok else None
        if evaluation.ok and (self._best is None or _value(evaluation) < _value(self.evaluations[self._best])):
            self._best = config
        if evaluation.ok and LAUNCHES in evaluation.environment:
            self._codes.setdefault(identity(evaluation.environment[LAUNCHES]), config)

    @property
    def begun(self) -> int:
        """Evaluations recorded or under way."""
        return len(self.evaluations) + len(self.pending)

    def twin(self, run: Sequence[Mapping[str, Any]]) -> Config | None:
        """The first config that was found OK with these launches."""
        return self._codes.get(identity(run))

    def departures(self, config: Config) -> int:
        """How many values are not those of the field's config."""
        return sum(self.field.get(name) != value for name, value in config.items())

    def knows(self, config: Config) -> bool:
        return config in self.evaluations or config in self.pending

    def ask(self) -> Config | None:
        """The sampler's next candidate; None, from then on, when the space is exhausted."""
        pending = {self.space.id(config) for config in self.pending if config in self.space}
        ids = self.sampler.ask(self.space, History(self._observed, pending), 1)
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
