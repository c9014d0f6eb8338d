"""`Finals`: the best candidates of each problem before the correctness gates, until one passes them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice

from m3gen.compiler.facts import KernelFacts
from m3gen.errors import UserError
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.place import MACHINE_CODE
from m3gen.evaluate.ranking import ranked
from m3gen.evaluate.verification import Verification
from m3gen.search.claims import Claims, work
from m3gen.search.executor import Done, Pool
from m3gen.search.loop import TICK_S
from m3gen.search.result import WinnerRow
from m3gen.search.rooms import Rooms
from m3gen.search.study import Group, Study
from m3gen.space import Config
from m3gen.spec import Status
from m3gen.store import Store


class Finals:
    """Verdicts are shared by signature and source, and stored the moment they are known.

    `gates` are the places where a winner has to run, in order; a stored verdict of a stronger place stands for that
    of a weaker one.
    """

    def __init__(
        self,
        rooms: Rooms,
        store: Store,
        groups: Sequence[Group],
        limit: int,
        gates: Sequence[str],
        claims: Claims,
    ) -> None:
        self._rooms = rooms
        self._store = store
        self._gates = gates
        self._claims = claims
        self._compiler = rooms.compiler()
        self._facts = cache(store.facts)
        self._contests = [
            _Contest(group, study, finalists(study, self._facts, limit))
            for group in groups
            for study in group.studies
        ]
        self._verdicts: dict[tuple[str, Config, str], Verification | None] = {}
        self._flight: dict[int, tuple[_Contest, Config, str]] = {}
        self.judged = 0  # verdicts that this session had to reach itself

    @property
    def verdicts(self) -> list[Verification]:
        """What is known so far: of each candidate the failure, or the pass of the last gate."""
        last = self._gates[-1]
        known = ((on, verdict) for (_, _, on), verdict in self._verdicts.items() if verdict is not None)
        return [verdict for on, verdict in known if on == last or not verdict.ok]

    def run(self, stopped: Callable[[], bool], tick: Callable[[], object]) -> None:
        """Until every problem has a winner or no finalists left, or `stopped`: then what the store knows
        decides. Workers are started only for a verdict that is not known; `tick` is called meanwhile."""
        pool: Pool | None = None
        try:
            while (waiting := [c for c in self._contests if self._due(c)]) and not stopped():
                pool = pool or self._rooms.verify_pool()
                self._submit(pool, waiting)
                if not self._flight:
                    time.sleep(TICK_S)  # for what other sessions are at
                for done in pool.poll(TICK_S):
                    self._settle(*self._flight.pop(done.ticket), done)
                self._claims.keep()
                tick()
        finally:
            if pool is not None:
                pool.close()
            with suppress(UserError):  # a store that fails here has failed before, and louder
                self._claims.close()

    def rows(self) -> tuple[WinnerRow, ...]:
        """The winners, in the order of the problems as the groups hold them."""
        found = []
        for contest in self._contests:
            if self._due(contest) is None and (config := contest.current):
                verdict = self._verdict(contest, config, self._gates[-1])
                assert verdict is not None  # nothing is due, so the one in front has passed
                found.append(self._row(contest.study, config, verdict))
        return tuple(found)

    def _due(self, contest: _Contest) -> tuple[Config, str] | None:
        """Drop the finalists that failed; the one in front and the gate it waits for, None when it has passed them
        all or there is none."""
        while (config := contest.current) is not None:
            for on in self._gates:
                verdict = self._verdict(contest, config, on)
                if verdict is None:
                    return config, on
                if not verdict.ok:
                    contest.finalists.pop(0)
                    break
            else:
                return None
        return None

    def _verdict(self, contest: _Contest, config: Config, on: str, *, anew: bool = False) -> Verification | None:
        """None while it is not known; the store is asked the first time, and `anew` for those of other sessions."""
        key = (contest.group.signature, config, on)
        if key not in self._verdicts or (anew and self._verdicts[key] is None):
            source = contest.group.source(config)
            known = self._store.verification(contest.study.problem, config, source, at_least=on)
            self._verdicts[key] = known if known and self._holds(known) else None
        return self._verdicts[key]

    def _holds(self, known: Verification) -> bool:
        """Whether a stored verdict would be reached again."""
        if known.status is Status.TIMEOUT:  # that may have been the machine, so it gets another try
            return False
        return known.on != MACHINE_CODE or known.environment.get("compiler") == self._compiler

    def _submit(self, pool: Pool, waiting: Sequence[_Contest]) -> None:
        under_way = {(contest.group.signature, config, on) for contest, config, on in self._flight.values()}
        for contest in waiting:
            if (due := self._due(contest)) is None or (contest.group.signature, *due) in under_way:
                continue
            config, on = due
            under_way.add((contest.group.signature, config, on))
            mine = self._claims.take(self._work(contest, config, on))
            if self._verdict(contest, config, on, anew=True) is not None:  # of a session that has just reached it
                if mine:
                    self._claims.release({self._work(contest, config, on)})
                continue
            if not mine:
                continue
            problem = contest.study.problem
            ticket = pool.submit(self._rooms.verify_request(problem.op, problem, config, on))
            self._flight[ticket] = (contest, config, on)

    def _work(self, contest: _Contest, config: Config, on: str) -> str:
        """What a claim on a verdict is on."""
        return work("gate", contest.group.signature, config.sha, contest.group.source(config), on, self._compiler)

    def _settle(self, contest: _Contest, config: Config, on: str, done: Done) -> None:
        if done.status is Status.OK:
            verdict: Verification = done.value
        else:
            verdict = Verification(
                status=done.status,
                on=on,
                source_sha=contest.group.source(config),
                seconds=done.seconds,
                reason=done.reason,
                environment={"compiler": self._compiler} if on == MACHINE_CODE else {},
            )
        self._store.commit_verification(contest.study.problem, config, verdict)
        self._claims.release({self._work(contest, config, on)})
        self._verdicts[contest.group.signature, config, on] = verdict
        self.judged += 1

    def _row(self, study: Study, config: Config, verdict: Verification) -> WinnerRow:
        evaluation = study.evaluations[config]
        value, baseline = _value(evaluation), study.baseline_us
        facts = _known(evaluation, self._facts)
        widest = max(facts, key=lambda f: f.registers, default=None)
        return WinnerRow(
            problem=study.problem,
            config=config,
            stage=evaluation.stage,
            judge=evaluation.judge,
            value_us=value,
            low_us=evaluation.low_us,
            high_us=evaluation.high_us,
            baseline_us=baseline,
            ratio=None if baseline is None else baseline / value,
            limit=evaluation.limit,
            registers=widest.registers if widest else 0,
            waves_per_simd=widest.waves_per_simd if widest else 0.0,
            workgroups_per_cu=widest.workgroups_per_cu if widest else 0,
            verification=verdict,
            field_config=study.field,
        )


class _Contest:
    """One problem's finalists, the best first; those that failed are gone."""

    def __init__(self, group: Group, study: Study, finalists: list[Config]) -> None:
        self.group = group
        self.study = study
        self.finalists = finalists

    @property
    def current(self) -> Config | None:
        return self.finalists[0] if self.finalists else None


def finalists(study: Study, facts: Callable[[str], KernelFacts | None], limit: int) -> list[Config]:
    """At most `limit` candidates that may win, the best first."""
    ok = [(config, evaluation) for config, evaluation in study.evaluations.items() if evaluation.may_win]
    ok.sort(key=lambda item: item[0].sha)  # equals in an order that does not tell which was tried first

    def registers(key: str) -> int | None:
        found = facts(key)
        return None if found is None else found.registers

    return list(islice(ranked(dict(ok), registers), limit))


def _known(evaluation: Evaluation, facts: Callable[[str], KernelFacts | None]) -> list[KernelFacts]:
    return [found for key in evaluation.facts if (found := facts(key)) is not None]


def _value(evaluation: Evaluation) -> float:
    assert evaluation.value_us is not None
    return evaluation.value_us
