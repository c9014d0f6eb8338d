"""`Schedule`: which candidate comes next. Baselines first, then the problems in turn, the hopeful ones more often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from m3gen.search.neighbours import distance, fitted
from m3gen.search.study import Group, Study
from m3gen.space import Config

# Of the turns of a problem from which more can be expected. Not none: a sampler also leaves a dead end late.
SHARE_WITHOUT_HOPE = 0.25
# Of a turn, for a candidate that ends before it costs anything: enough to end a run of them.
COST_OF_NOTHING = 0.05
TIPPED = 2  # groups that a new best is tried on


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A config under evaluation for some problems of a group, that of the study that asked for it the first.

    `limits_us`: what it has to get under in each, once it is handed out.
    """

    group: Group
    config: Config
    studies: tuple[Study, ...]
    baseline: bool
    limits_us: tuple[float | None, ...] = ()

    @property
    def asker(self) -> Study:
        return self.studies[0]


class Schedule:
    """Hands out candidates until every problem has `evaluations` (None: without end) or is exhausted; what the field
    does under the other loads of its group is evaluated for it too and does not count.

    Time goes where gains are expected. A problem is hopeful (`Study.hopeful`) until it is within a tenth of its
    floor or has had no gain of more than 2 % for 24 evaluations; one that is not gets a turn for every four of one
    that is. What was known before a session counts as turns, so that less known problems catch up first. A new
    best is tried on the nearest problem of each of the two nearest groups too.
    """

    def __init__(self, groups: Sequence[Group], evaluations: int | None) -> None:
        self._groups = groups
        self._turns = [(group, study) for group in groups for study in group.studies]
        self._evaluations = evaluations
        self._members = {study: len(group.studies) for group, study in self._turns}
        self._used: dict[Study, float] = {}

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
                self._used[study] = self._position(study) + _cost(study)
                return self._start(group, study, config, baseline=False)
        return None

    def take_back(self, candidate: Candidate) -> None:
        """It ended before it cost anything: none of its studies waits for it, and its turn was none."""
        for study in candidate.studies:
            study.release(candidate.config)
        asker = candidate.asker
        self._used[asker] -= (1 - COST_OF_NOTHING) * _cost(asker)

    def spread(self, candidate: Candidate, study: Study) -> None:
        """Have the new best of a study tried on its neighbours, the studies of its group aside: they share it."""
        others = [
            group for group in self._groups if group is not candidate.group and group.op is candidate.group.op
        ]
        nearest = [min(group.studies, key=lambda one: distance(study.problem, one.problem)) for group in others]
        nearest.sort(key=lambda one: distance(study.problem, one.problem))
        for one in nearest[:TIPPED]:
            config = fitted(candidate.config, one.space)
            if config is not None and not one.knows(config) and config not in one.tips:
                one.tips.append(config)

    @property
    def exhausted(self) -> bool:
        """Whether it ended for lack of candidates rather than of budget, for every problem."""
        return all(study.exhausted for _, study in self._turns)

    def _turn(self) -> tuple[Group, Study] | None:
        open_turns = [turn for turn in self._turns if self._open(turn[1]) and not turn[1].exhausted]
        return min(open_turns, key=lambda turn: self._position(turn[1]), default=None)

    def _position(self, study: Study) -> float:
        """Turns it has had. What it knew before counts as such, but those of its group were for all of them."""
        if study not in self._used:
            self._used[study] = study.begun / self._members[study]
        return self._used[study]

    def _open(self, study: Study) -> bool:
        return self._evaluations is None or study.begun < self._evaluations

    def _start(self, group: Group, study: Study, config: Config, *, baseline: bool) -> Candidate:
        others = (s for s in group.studies if s is not study and self._open(s))
        sharing = [s for s in others if not s.knows(config) and (config in s.space or config == s.field)]
        candidate = Candidate(group, config, (study, *sharing), baseline)
        for started in candidate.studies:
            started.pending.add(config)
        return candidate


def _cost(study: Study) -> float:
    """Turns that one turn counts for."""
    return 1.0 if study.hopeful else 1 / SHARE_WITHOUT_HOPE
