"""`Search`: keeps the workers busy with candidates, and stores what comes back, until the budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.rungs import STOPPED
from m3gen.search.judging import Judge
from m3gen.search.result import Ended
from m3gen.search.rooms import Done, Pool, Rooms
from m3gen.search.schedule import Candidate, Schedule
from m3gen.search.study import Study
from m3gen.spec import Status
from m3gen.store import Store

TICK_S = 0.2  # how long to wait for a worker before progress is told and a stop is heeded


class Search:
    """One run of the search part of a session. `new` evaluations; launches `compiled` and `cached`."""

    def __init__(
        self, rooms: Rooms, store: Store, judge: Judge, schedule: Schedule, session_id: int, in_flight: int
    ) -> None:
        self._rooms = rooms
        self._store = store
        self._judge = judge
        self._schedule = schedule
        self._session_id = session_id
        self._most_in_flight = in_flight
        self._flight: dict[int, Candidate] = {}
        self._pool: Pool | None = None
        self.new = self.compiled = self.cached = 0

    def run(
        self, remaining_s: Callable[[], float | None], stopped: Callable[[], bool], tick: Callable[[], object]
    ) -> Ended:
        """Until the schedule is done, no time remains (None: no bound) or `stopped`; calls `tick` meanwhile.

        The schedule's own end waits for what is in flight. The other two keep what has arrived and abandon
        the rest, but for baselines, which overtime waits for.
        """
        try:
            while not stopped():
                self._fill(remaining_s, stopped)
                if not self._flight or (remaining_s() == 0 and not self._baseline_in_flight()):
                    break
                self._collect(TICK_S)
                tick()
            self._collect(0.0)
        finally:
            if self._pool is not None:
                self._pool.close()
        if stopped():
            return "interrupted"
        return "exhausted" if self._schedule.exhausted else "budget"

    def _fill(self, remaining_s: Callable[[], float | None], stopped: Callable[[], bool]) -> None:
        """Hands candidates to the workers until enough are in flight."""
        while len(self._flight) < self._most_in_flight and not stopped():
            candidate = self._schedule.next(baselines_only=remaining_s() == 0)
            if candidate is None:
                return
            if not candidate.baseline and (end := self._judge.prior(candidate, candidate.asker)):
                self._schedule.take_back(candidate)
                self._record(candidate.asker, candidate, end)
                continue
            admitted = tuple(study for study in candidate.studies if self._admit(candidate, study))
            if admitted:
                self._submit(replace(candidate, studies=admitted))

    def _admit(self, candidate: Candidate, study: Study) -> bool:
        """Whether the static rung lets the candidate climb; its refusal is an evaluation too."""
        refusal = self._judge.static(candidate, study)
        if refusal is not None:
            self._record(study, candidate, refusal)
        return refusal is None

    def _submit(self, candidate: Candidate) -> None:
        if self._pool is None:
            self._pool = self._rooms.compile_pool()
        self._flight[self._pool.submit(self._judge.request(candidate))] = candidate

    def _baseline_in_flight(self) -> bool:
        return any(candidate.baseline for candidate in self._flight.values())

    def _collect(self, timeout_s: float) -> None:
        """Stores what the workers have to say: facts first, as evaluations refer to them."""
        for done in self._pool.poll(timeout_s) if self._pool is not None and self._flight else ():
            candidate = self._flight.pop(done.ticket)
            if done.status is Status.OK:
                self._keep_facts(done)
            for study, evaluation in self._judge.answer(candidate, done):
                if self._judge.leaves_open(candidate, study, evaluation):
                    study.release(candidate.config)
                elif self._record(study, candidate, evaluation):
                    self._schedule.spread(candidate, study)

    def _keep_facts(self, done: Done) -> None:
        for key, facts in done.value.facts.items():
            if not facts.extra.get(STOPPED):
                self._store.commit_facts(key, facts)
        self.compiled += done.value.compiled
        self.cached += done.value.cached

    def _record(self, study: Study, candidate: Candidate, evaluation: Evaluation) -> bool:
        """Whether it is the best of its problem from now on."""
        self._store.commit_evaluation(self._session_id, study.problem, candidate.config, evaluation)
        self.new += 1
        return study.record(candidate.config, evaluation)
