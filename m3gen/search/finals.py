"""`Finals`: the best candidates of each problem before the correctness gates, until one passes them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice

from m3gen.compiler.facts import KernelFacts
from m3gen.errors import UserError
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.place import MACHINE_CODE
from m3gen.evaluate.ranking import TIE, ranked
from m3gen.evaluate.verification import Verification
from m3gen.search.claims import Claims, work
from m3gen.search.consolidation import Rival, consolidated, text_of
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
        self._prefer_few()
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
        """The winners, consolidated, in the order of the problems as the groups hold them."""
        won = {one.study.problem: one for one in self._contests if self._due(one) is None and one.current}
        passed = cache(self._passed)  # by group and config: what ties on one problem does so on its neighbours
        rivals = {problem: self._rivals(contest, passed) for problem, contest in won.items()}
        chosen = consolidated(rivals, lambda problem: text_of(won[problem].group.op, problem))
        found = []
        for problem, contest in won.items():
            verdict = passed(contest.group, chosen[problem])
            assert verdict is not None  # a rival has passed
            found.append(self._row(contest.study, chosen[problem], verdict))
        return tuple(found)

    def _prefer_few(self) -> None:
        """Put in front of each contest a config that ties with its best and serves others too: what is not going to be
        in a table need not pass a gate."""
        failed = cache(lambda group, config: any(self._failed(group, config, on) for on in self._gates))
        rivals = {}
        for contest in self._contests:
            hopeful = [one for one in contest.finalists if not failed(contest.group, one)]
            if hopeful:
                known = contest.study.evaluations
                rivals[contest.study.problem] = [Rival(c, _value(known[c]), known[c].stage) for c in hopeful]
        groups = {contest.study.problem: contest.group for contest in self._contests}
        chosen = consolidated(rivals, lambda problem: text_of(groups[problem].op, problem))
        for contest in self._contests:
            if (config := chosen.get(contest.study.problem)) is not None:
                contest.finalists.remove(config)
                contest.finalists.insert(0, config)

    def _failed(self, group: Group, config: Config, on: str) -> bool:
        verdict = self._stored(group, config, on)
        return verdict is not None and not verdict.ok

    def _rivals(self, contest: _Contest, passed: Callable[[Group, Config], Verification | None]) -> list[Rival]:
        """The winner of a contest, and those that tie with it and are known to pass every gate too: the best first."""
        known, best = contest.study.evaluations, contest.current
        assert best is not None
        slowest = (1 + TIE) * _value(known[best])  # the fastest is no slower than the winner
        tied = {
            config: evaluation
            for config, evaluation in known.items()
            if evaluation.may_win and _value(evaluation) <= slowest and passed(contest.group, config)
        }
        return [Rival(one, _value(tied[one]), tied[one].stage) for one in _ordered(tied, self._facts)]

    def _passed(self, group: Group, config: Config) -> Verification | None:
        """The verdict of the last gate on a candidate that is known to have passed them all."""
        verdict = None
        for on in self._gates:
            verdict = self._verdicts.get((group.signature, config, on)) or self._stored(group, config, on)
            if verdict is None or not verdict.ok:
                return None
        return verdict

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
            self._verdicts[key] = self._stored(contest.group, config, on)
        return self._verdicts[key]

    def _stored(self, group: Group, config: Config, on: str) -> Verification | None:
        problem = group.studies[0].problem  # a verdict does not depend on the load
        known = self._store.verification(problem, config, group.source(config), at_least=on)
        return known if known and self._holds(known) else None

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
    may_win = {config: evaluation for config, evaluation in study.evaluations.items() if evaluation.may_win}
    return list(islice(_ordered(may_win, facts), limit))


def _ordered(
    evaluations: Mapping[Config, Evaluation], facts: Callable[[str], KernelFacts | None]
) -> Iterator[Config]:
    # Equals in an order that does not tell which was tried first.
    by_sha = dict(sorted(evaluations.items(), key=lambda item: item[0].sha))

    def registers(key: str) -> int | None:
        found = facts(key)
        return None if found is None else found.registers

    return ranked(by_sha, registers)


def _known(evaluation: Evaluation, facts: Callable[[str], KernelFacts | None]) -> list[KernelFacts]:
    return [found for key in evaluation.facts if (found := facts(key)) is not None]


def _value(evaluation: Evaluation) -> float:
    assert evaluation.value_us is not None
    return evaluation.value_us
