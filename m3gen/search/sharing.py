"""`Sharing`: several sessions on one store, each evaluating what no other has evaluated or is about to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from m3gen.search.claims import Claims, work
from m3gen.search.judging import Judge
from m3gen.search.schedule import Candidate
from m3gen.search.study import Group, Study
from m3gen.space import Config
from m3gen.store import Record, Store

HEAR_S = 0.5  # between two looks at what others have stored


class Sharing:
    """Claims candidates before they are evaluated, and takes over what others find out.

    A candidate that another session is at stays pending here, so that the sampler proposes something else, until its
    evaluation is in the store, or the other has given it up or is gone: then it is this session's after all.
    """

    def __init__(self, store: Store, judge: Judge, groups: Sequence[Group], session_id: int) -> None:
        self._store = store
        self._judge = judge
        self._session_id = session_id
        self._claims = Claims(store, session_id)
        self._studies = {study.problem: (group, study) for group in groups for study in group.studies}
        self._elsewhere: list[Candidate] = []
        self._newest = store.newest_evaluation()
        self._looked = time.monotonic()

    @property
    def waiting(self) -> Sequence[Candidate]:
        """Candidates that other sessions are at."""
        return self._elsewhere

    def claim(self, candidate: Candidate) -> Candidate | None:
        """The candidate with the studies for which it is this session's to evaluate; None when there are none."""
        if not self._claims.take(self._work(candidate)):
            self._elsewhere.append(candidate)
            return None
        # Another may have had the claim, and have released it, since the store was last looked at.
        missing = tuple(study for study in candidate.studies if not self._recall(candidate, study))
        if not missing:
            self.release([candidate])
            return None
        return replace(candidate, studies=missing)

    def release(self, candidates: Sequence[Candidate]) -> None:
        """Evaluated and stored."""
        self._claims.release({self._work(candidate) for candidate in candidates})

    def hear(self) -> list[Candidate]:
        """Take over what is new in the store; the candidates that have become this session's to evaluate."""
        self._claims.keep()
        now = time.monotonic()
        if now - self._looked < HEAR_S:
            return []
        self._looked = now
        found, self._newest = self._store.evaluations_of_others(self._session_id, [*self._studies], self._newest)
        for problem, record in found:
            self._take_over(*self._studies[problem], record)
        waiting, self._elsewhere = self._elsewhere, []
        open_still = (self._unknown(candidate) for candidate in waiting)
        return [mine for candidate in open_still if candidate and (mine := self.claim(candidate))]

    def close(self) -> None:
        """Give up what was claimed and not evaluated."""
        self._claims.close()

    def _work(self, candidate: Candidate) -> str:
        group, judge = candidate.group, self._judge
        source = group.source(candidate.config)
        return work("judge", group.signature, candidate.config.sha, judge.version, judge.compiler, source)

    def _unknown(self, candidate: Candidate) -> Candidate | None:
        studies = tuple(study for study in candidate.studies if candidate.config not in study.evaluations)
        return replace(candidate, studies=studies) if studies else None

    def _recall(self, candidate: Candidate, study: Study) -> bool:
        for record in self._store.evaluations(study.problem, config=candidate.config):
            self._take_over(candidate.group, study, record)
        return candidate.config in study.evaluations

    def _take_over(self, group: Group, study: Study, record: Record) -> None:
        config: Config = record.config
        if config in study.evaluations or not study.admits(config):
            return
        if self._judge.holds(record.evaluation, group.source(config)):
            study.record(config, record.evaluation)
