"""`Session`: from problems to verified winners, everything that is found out in the store on the way."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from m3gen.errors import UserError
from m3gen.evaluate.place import gates
from m3gen.ops import field_config
from m3gen.search.admission import require_candidates
from m3gen.search.budget import Budget
from m3gen.search.claims import Claims
from m3gen.search.executor import Executor, LocalExecutor
from m3gen.search.finals import Finals
from m3gen.search.judging import Judge
from m3gen.search.loop import Search
from m3gen.search.progress import Listener, Phase, Progress
from m3gen.search.result import Ended, SessionResult
from m3gen.search.rooms import Rooms, real_rooms
from m3gen.search.sampler import Sampler, make_sampler
from m3gen.search.schedule import Schedule
from m3gen.search.seeds import Related
from m3gen.search.study import Group, Study
from m3gen.space import Config, Space
from m3gen.spec import Problem
from m3gen.store import Store, arguments_sha
from m3gen.targets import Device


class Session:
    """Searches problems of one device, then takes the best candidates of each through the gate.

    Problems are folded by their op (`Op.canonical`) first, and grouped by signature: one compile of a
    candidate serves all problems of a group. What the store knows under the same judge, compiler and source
    is not done again: a session that was killed goes on where it stopped, a finished one has nothing to do.
    Searches start from what the store and the tables in `tables_dir` know of related problems. Workers run where
    `executor` says, on this machine by default; twice `jobs` candidates are under way. With `ordered` the sampler
    hears of them in the order in which they were handed out, whatever the workers' timing. `UserError` for an
    unknown op or sampler, and for a problem none of whose configs is valid.
    """

    def __init__(
        self,
        store: Store,
        problems: Sequence[Problem],
        device: Device,
        *,
        sampler: str = "hybrid",
        budget: Budget,
        jobs: int,
        seed: int = 0,
        cache_dir: Path,
        tables_dir: Path | None = None,
        deadline_s: float = 120.0,
        verify_deadline_s: float = 600.0,
        verify_limit: int = 8,
        listener: Listener | None = None,
        executor: Executor | None = None,
        ordered: bool = False,
        rooms: Rooms | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rooms = rooms or real_rooms(
            executor or LocalExecutor(jobs),
            device.arch,
            deadline_s=deadline_s,
            verify_deadline_s=verify_deadline_s,
            cache_dir=cache_dir,
        )
        self._store = store
        self._device = device
        self._budget = budget
        self._in_flight = 2 * jobs
        self._ordered = ordered
        self._verify_limit = verify_limit
        self._listener = listener
        self._clock = clock
        self._stop = threading.Event()
        self._judge = Judge(self._rooms, device)
        self._problems = tuple(dict.fromkeys(self._rooms.op(p.op).canonical(p) for p in problems))
        self._groups = self._make_groups(lambda: make_sampler(sampler, seed), Related(store, tables_dir))
        self._studies = [study for group in self._groups for study in group.studies]
        self._schedule = Schedule(self._groups, budget.evaluations)
        self._arguments = {
            "sampler": sampler,
            "seed": seed,
            "budget": str(budget),
            "device": device.name,
            "judge": self._judge.version,
            "compiler": self._judge.compiler,
        }
        self._search: Search | None = None
        self._finals: Finals | None = None
        self._started = clock()
        self._spent_before = 0.0

    def stop(self) -> None:
        """Ask a running session to end soon; from any thread or a signal handler. What arrived is kept."""
        self._stop.set()

    def run(self) -> SessionResult:
        """Search, then verify. Everything is in the store the moment it is known, however this ends."""
        self._started = self._clock()
        self._spent_before = self._store.spent_seconds(arguments_sha(self._arguments, self._problems))
        self._recall()
        session_id = self._store.begin(self._arguments, self._problems)
        ended, new = self._run_search(session_id)
        claims = Claims(self._store, session_id)
        places = gates(self._device.arch)
        finals = self._finals = Finals(self._rooms, self._store, self._groups, self._verify_limit, places, claims)
        finals.run(self._stop.is_set, lambda: self._tell("verify"))
        if self._stop.is_set():
            ended = "interrupted"
        elif new == finals.judged == 0:
            ended = "nothing to do"
        return SessionResult(rows=finals.rows(), progress=self._tell("done"), ended=ended)

    def _run_search(self, session_id: int) -> tuple[Ended, int]:
        """How the search ended, how many evaluations are new. The store counts the seconds of this part."""
        state = "failed"
        try:
            self._search = search = Search(
                self._rooms,
                self._store,
                self._judge,
                self._groups,
                self._schedule,
                session_id,
                self._in_flight,
                ordered=self._ordered,
            )
            state = ended = search.run(self._remaining, self._stop.is_set, lambda: self._tell("search"))
            return ended, search.new
        finally:
            with suppress(UserError):  # a store that fails here has failed before, and louder
                self._store.end(session_id, state)

    # -- before ---------------------------------------------------------------------------------------------

    def _make_groups(self, sampler: Callable[[], Sampler], related: Related) -> list[Group]:
        groups: dict[str, Group] = {}
        spaces: dict[str, Space] = {}
        for problem in self._problems:
            op = self._rooms.op(problem.op)
            signature = self._store.signature(problem)
            group = groups.setdefault(signature, Group(op, signature, [], self._rooms.source_sha))
            space = op.space(problem, self._device)
            require_candidates(problem, space)
            space = spaces.setdefault(space.sha, space)  # samplers remember what they made of one
            field = field_config(op, problem, self._device)
            group.studies.append(
                Study(
                    problem=problem,
                    space=space,
                    field=field,
                    sampler=sampler(),
                    floor_us=self._rooms.least(op.work(problem, field), self._device),
                    prior=related.prior(problem, space, field, op.default(problem, self._device)),
                )
            )
        for group in groups.values():
            fields = frozenset(study.field for study in group.studies)
            for study in group.studies:
                study.given = fields - {study.field}
        return list(groups.values())

    def _recall(self) -> None:
        """Take over what the store knows and still holds."""
        for group in self._groups:
            for study in group.studies:
                for record in self._store.evaluations(study.problem):
                    if study.admits(record.config) and self._judge.holds(
                        record.evaluation, group.source(record.config)
                    ):
                        study.record(record.config, record.evaluation)
                while study.incumbent and self._is_wrong(group, study, study.incumbent.config):
                    study.disqualify_best()

    def _is_wrong(self, group: Group, study: Study, config: Config) -> bool:
        """Whether the gate has refused it in an earlier session."""
        verdict = self._store.verification(study.problem, config, group.source(config))
        return verdict is not None and not verdict.ok

    # -- meanwhile ------------------------------------------------------------------------------------------

    def _remaining(self) -> float | None:
        """Seconds of the budget that are left; None when it has no bound in seconds."""
        if self._budget.seconds is None:
            return None
        return max(0.0, self._budget.seconds - self._spent_before - (self._clock() - self._started))

    def _tell(self, phase: Phase) -> Progress:
        """The progress, told to the listener too."""
        search, finals = self._search, self._finals
        evaluations = [evaluation for study in self._studies for evaluation in study.evaluations.values()]
        verdicts = finals.verdicts if finals else []
        failed = Counter(e.status for e in evaluations if not e.ok) + Counter(
            v.status for v in verdicts if not v.ok
        )
        progress = Progress(
            phase=phase,
            refused=self._refused,
            space_sizes={study.problem: len(study.space) for study in self._studies},
            evaluated=len(evaluations),
            stored=len(evaluations) - (search.new if search else 0),
            compiled=search.compiled if search else 0,
            cached=search.cached if search else 0,
            predicted=sum(evaluation.may_win for evaluation in evaluations),
            stopped=Counter(e.stage for e in evaluations if e.ok and not e.may_win),
            verified=sum(verdict.ok for verdict in verdicts),
            failed=dict(failed),
            best={study.problem: best for study in self._studies if (best := study.incumbent)},
            elapsed_s=self._clock() - self._started,
            remaining_s=self._remaining() if phase == "search" else None,
        )
        if self._listener is not None:
            self._listener.update(progress)
        return progress

    @cached_property
    def _refused(self) -> dict[str, int]:
        """Raw points that rules cut, by code, equal spaces of one group counted once."""
        total: Counter[str] = Counter()
        for group in self._groups:
            for space in {study.space.sha: study.space for study in group.studies}.values():
                total.update(space.refused)
        return dict(total)
