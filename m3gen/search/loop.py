"""`Search`: keeps the workers busy with candidates, and stores what comes back, until the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from m3gen.errors import UserError
from m3gen.evaluate.dynamics import raw
from m3gen.evaluate.evaluation import Evaluation
from m3gen.search.executor import Done, Pool
from m3gen.search.judging import Judge
from m3gen.search.result import Ended
from m3gen.search.rooms import Rooms
from m3gen.search.schedule import Candidate, Schedule
from m3gen.search.sharing import Sharing
from m3gen.search.study import Group, Study
from m3gen.spec import Status
from m3gen.store import Store

TICK_S = 0.2  # how long to wait for a worker before progress is told and a stop is heeded


class Search:
    """One run of the search part of a session. `new` evaluations; launches `compiled` and `cached`.

    An evaluation is stored when it arrives. The sampler hears of it at once, too, or (`ordered`) when its turn comes in
    the order of handing out: a search is then the same wherever its workers run, and a slow candidate holds up others.
    """

    def __init__(
        self,
        rooms: Rooms,
        store: Store,
        judge: Judge,
        groups: Sequence[Group],
        schedule: Schedule,
        session_id: int,
        in_flight: int,
        *,
        ordered: bool,
    ) -> None:
        self._rooms = rooms
        self._store = store
        self._judge = judge
        self._schedule = schedule
        self._session_id = session_id
        self._most_in_flight = in_flight
        self._ordered = ordered
        self._sharing = Sharing(store, judge, groups, session_id)
        self._flight: dict[int, Candidate] = {}  # in the order in which they were handed out
        self._answers: dict[int, list[tuple[Study, Evaluation | None]]] = {}  # stored, not told yet
        self._pool: Pool | None = None
        self.new = self.compiled = self.cached = 0

    def run(
        self, remaining_s: Callable[[], float | None], stopped: Callable[[], bool], tick: Callable[[], object]
    ) -> Ended:
        """Until the schedule is done, no time remains (None: no bound) or `stopped`; calls `tick` meanwhile.

        The schedule's own end waits for what is in flight, here or in another session. The other two keep what has
        arrived and abandon the rest, but for baselines, which overtime waits for.
        """
        try:
            while not stopped():
                for candidate in self._sharing.hear():
                    self._submit(candidate)
                self._fill(remaining_s, stopped)
                if not self._under_way(baselines_only=remaining_s() == 0):
                    break
                self._collect(TICK_S)
                while self._tell(in_order=self._ordered):
                    self._fill(
                        remaining_s, stopped
                    )  # after each: what is proposed depends on nothing but the order
                tick()
            self._collect(0.0)
            while self._tell(in_order=False):
                pass
        finally:
            if self._pool is not None:
                self._pool.close()
            with suppress(UserError):  # a store that fails here has failed before, and louder
                self._sharing.close()
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
                self._keep([(candidate, [(candidate.asker, end)])])
                candidate.asker.record(candidate.config, end)
                continue
            admitted = tuple(study for study in candidate.studies if self._admit(candidate, study))
            if admitted and (mine := self._sharing.claim(replace(candidate, studies=admitted))):
                self._submit(mine)

    def _admit(self, candidate: Candidate, study: Study) -> bool:
        """Whether the static rung lets the candidate climb; its refusal is an evaluation too."""
        refusal = self._judge.static(candidate, study)
        if refusal is not None:
            self._keep([(candidate, [(study, refusal)])])
            study.record(candidate.config, refusal)
        return refusal is None

    def _submit(self, candidate: Candidate) -> None:
        if self._pool is None:
            self._pool = self._rooms.compile_pool()
        candidate = replace(candidate, limits_us=self._judge.limits(candidate))
        self._flight[self._pool.submit(self._judge.request(candidate))] = candidate

    def _under_way(self, *, baselines_only: bool) -> bool:
        candidates = [*self._flight.values(), *self._sharing.waiting]
        return any(candidate.baseline or not baselines_only for candidate in candidates)

    def _collect(self, timeout_s: float) -> None:
        """Stores what the workers have to say: facts first, as evaluations refer to them, then all that came with
        them at once."""
        if self._pool is None or not self._flight:
            time.sleep(timeout_s)  # for other sessions
            return
        answered = self._pool.poll(timeout_s)
        for done in answered:
            if done.status is Status.OK:
                self._keep_facts(done)
            self._answers[done.ticket] = [*self._judge.answer(self._flight[done.ticket], done)]
        self._keep((self._flight[done.ticket], self._answers[done.ticket]) for done in answered)
        self._sharing.release([self._flight[done.ticket] for done in answered])

    def _tell(self, *, in_order: bool) -> bool:
        """Let the studies know of one answer, and with them their samplers; False when none may be told yet."""
        ticket = next(iter(self._flight if in_order else self._answers), None)
        if ticket not in self._answers or ticket is None:
            return False
        candidate = self._flight.pop(ticket)
        for study, evaluation in self._answers.pop(ticket):
            if evaluation is None:
                study.release(candidate.config)
            elif study.record(candidate.config, evaluation):
                self._schedule.spread(candidate, study)
        return True

    def _keep_facts(self, done: Done) -> None:
        for key, facts in done.value.facts.items():
            self._store.commit_facts(key, raw(facts))
        for name, traces in done.value.traces.items():
            self._store.commit_traces(name, traces)
        self.compiled += done.value.compiled
        self.cached += done.value.cached

    def _keep(self, answers: Iterable[tuple[Candidate, Sequence[tuple[Study, Evaluation | None]]]]) -> None:
        rows = [
            (study.problem, candidate.config, evaluation)
            for candidate, found in answers
            for study, evaluation in found
            if evaluation is not None
        ]
        if rows:
            self._store.commit_evaluations(self._session_id, rows)
            self.new += len(rows)
