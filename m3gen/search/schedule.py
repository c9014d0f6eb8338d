"""`Schedule`: which candidate comes next. Baselines first, then the problem with the fewest evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from m3gen.search.study import Group, Study
from m3gen.space import Config


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A config under evaluation for some problems of a group."""

    group: Group
    config: Config
    studies: tuple[Study, ...]
    baseline: bool


class Schedule:
    """Hands out candidates until every problem has `evaluations` (None: without end) or is exhausted."""

    def __init__(self, groups: Sequence[Group], evaluations: int | None) -> None:
        self._turns = [(group, study) for group in groups for study in group.studies]
        self._evaluations = evaluations

    def next(self, *, baselines_only: bool = False) -> Candidate | None:
        """The next candidate, pending from now on in each of its studies; None when there is none.

        The baseline of a problem is due whatever the budget.
        """
        for group, study in self._turns:
            if not study.knows(study.field):
                return self._start(group, study, study.field, baseline=True)
        while not baselines_only and (turn := self._turn()):
            group, study = turn
            config = study.ask()
            if config is not None:
                return self._start(group, study, config, baseline=False)
        return None

    @property
    def exhausted(self) -> bool:
        """Whether it ended for lack of candidates rather than of budget, for every problem."""
        return all(study.exhausted for _, study in self._turns)

    def _turn(self) -> tuple[Group, Study] | None:
        open_turns = [turn for turn in self._turns if self._open(turn[1]) and not turn[1].exhausted]
        return min(open_turns, key=lambda turn: turn[1].begun, default=None)

    def _open(self, study: Study) -> bool:
        return self._evaluations is None or study.begun < self._evaluations

    def _start(self, group: Group, study: Study, config: Config, *, baseline: bool) -> Candidate:
        others = (s for s in group.studies if s is not study and self._open(s))
        sharing = [s for s in others if not s.knows(config) and (config in s.space or config == s.field)]
        candidate = Candidate(group, config, (study, *sharing), baseline)
        for started in candidate.studies:
            started.pending.add(config)
        return candidate
