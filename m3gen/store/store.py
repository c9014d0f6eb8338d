"""`Store`: everything that was found out, one row the moment it is known."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from sqlalchemy import Engine, bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session, sessionmaker

from m3gen.compiler.facts import KernelFacts
from m3gen.errors import UserError
from m3gen.evaluate import place
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.place import INTERPRETER, MACHINE_CODE
from m3gen.evaluate.verification import Verification
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store import claims, dialect, evaluations, faults, history, identity, prune, rows, union, winners
from m3gen.store.check import logical_faults
from m3gen.store.engine import open_engine
from m3gen.store.evaluations import Found
from m3gen.store.info import Info, info
from m3gen.store.location import Location
from m3gen.store.migrate import migrate, require_current, require_ours
from m3gen.store.models import (
    EvaluationRow,
    FactsRow,
    SessionProblemRow,
    SessionRow,
    TracesRow,
    VerificationRow,
)
from m3gen.store.prune import Pruned
from m3gen.store.records import FailureCount, Record, SessionRecord, Winner
from m3gen.store.reserve import Reserve
from m3gen.store.union import Merged

_UPDATE_SESSION = update(SessionRow).where(SessionRow.id == bindparam("session"))
RUNNING = "running"  # the state of a session that has not ended, or was killed


class Store:
    """A database of evaluations, opened by `Store.open`.

    Every `commit_...` is one transaction, and outlives this process once it returns: True if it was new, False if a
    row of that identity was there, which is then left as it is. Every method raises `UserError` for what the
    user can mend (full disk, read-only or damaged file, a lock that is not let go).
    """

    def __init__(self, engine: Engine, location: Location) -> None:
        self.location = location
        self._engine = engine
        self._reads = sessionmaker(engine)
        self._writes = sessionmaker(dialect.writing(engine))
        self._begun: dict[int, float] = {}  # session -> monotonic seconds at its begin
        self._reserves: dict[int, Reserve] = {}  # session -> room for its end

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Store:
        """Open the database at a SQLAlchemy URL; make it (and its folder), or upgrade its schema, if need be.

        `read_only` changes nothing, works in a read-only folder, and refuses what is not there. `UserError`
        when there is no store to be had: of a newer m3gen, damaged, read-only, something else's, unreachable.
        """
        location = Location.parse(url)
        with faults.as_user_errors(location):
            engine = open_engine(location, read_only=read_only)
            try:
                with engine.connect() as connection:
                    if found := dialect.damage(connection):
                        raise faults.damaged(location, found[0])
                    require_ours(connection, location)  # before anything in the file is changed
                if read_only:
                    require_current(engine, location)
                else:
                    dialect.use_write_ahead_log(engine)
                    migrate(engine, location)
            except BaseException:
                engine.dispose()
                raise
        return cls(engine, location)

    def close(self) -> None:
        """Let go of the database; a second call does nothing."""
        for reserve in self._reserves.values():
            reserve.release()
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- sessions -------------------------------------------------------------------------------------------

    def begin(self, arguments: Mapping[str, Any], problems: Sequence[Problem]) -> int:
        """Note that a session starts on `problems` with `arguments` (plain JSON data); its id."""
        with self._write() as session:
            row = SessionRow(
                arguments=dict(arguments),
                arguments_sha=identity.arguments_sha(arguments, problems),
                state=RUNNING,
                seconds=0.0,
                started_at=rows.now(),
            )
            session.add(row)
            session.flush()
            number = row.id
            for problem in dict.fromkeys(problems):
                evaluations.insert_problem(session, problem)
                session.add(SessionProblemRow(session_id=number, problem_sha=problem.sha))
        self._begun[number] = time.monotonic()
        self._reserves[number] = Reserve(self.location)
        return number

    def end(self, session_id: int, state: str) -> None:
        """Note how a session ended, in a word or two. `KeyError` if it was not begun here or has ended.

        A full disk takes it too: what was kept for it is given up and, where that is not enough (a limit on the
        size of a file), the log is written into the database and begun anew.
        """
        make_room = iter((self._reserves[session_id].release, self._begin_log_anew))
        while True:
            try:
                self._write_end(session_id, state)
                break
            except faults.NoRoom:
                if (make := next(make_room, None)) is None:
                    raise
                make()
        del self._begun[session_id]
        self._reserves.pop(session_id).release()

    def _write_end(self, session_id: int, state: str) -> None:
        with self._write() as session:
            self._count_seconds(session, session_id, state=state, ended_at=rows.now())

    def _begin_log_anew(self) -> None:
        with suppress(UserError), faults.as_user_errors(self.location):
            dialect.begin_log_anew(self._engine)

    def spent_seconds(self, arguments_sha: str) -> float:
        """Wall seconds that sessions of these arguments (see `arguments_sha`) took, killed ones included."""
        with self._read() as session:
            total = select(func.sum(SessionRow.seconds)).where(SessionRow.arguments_sha == arguments_sha)
            return session.scalar(total) or 0.0

    def _count_seconds(self, session: Session, session_id: int, **changes: str) -> None:
        changed = {"seconds": time.monotonic() - self._begun[session_id], **changes}
        session.connection().execute(_UPDATE_SESSION, {"session": session_id, **changed})

    # -- facts ----------------------------------------------------------------------------------------------

    def commit_facts(self, key: str, facts: KernelFacts) -> bool:
        """Keep what the machine code of one launch says, under the key of that launch."""
        with self._write() as session:
            return dialect.insert_new(session, FactsRow.key, rows.facts_columns(key, facts)) is not None

    def facts(self, key: str) -> KernelFacts | None:
        with self._read() as session:
            found = session.scalar(select(FactsRow.facts).where(FactsRow.key == key))
        return None if found is None else KernelFacts.from_dict(found)

    def commit_traces(self, name: str, traces: bytes) -> bool:
        """Keep what running a kernel showed (`evaluate.trace.Traces`), under its name."""
        with self._write() as session:
            return dialect.insert_new(session, TracesRow.name, rows.traces_columns(name, traces)) is not None

    def traces(self, name: str) -> bytes | None:
        with self._read() as session:
            return session.scalar(select(TracesRow.traces).where(TracesRow.name == name))

    # -- evaluations ----------------------------------------------------------------------------------------

    def commit_evaluation(self, session_id: int, problem: Problem, config: Config, evaluation: Evaluation) -> bool:
        """Keep what one rung found out about one candidate, and how long the session has run.

        Identity: problem, config, stage, judge, compiler and source. The compiler's fingerprint is that of
        the facts, or `environment["compiler"]` without facts; the source is `environment["source_sha"]`;
        either may be missing. The facts come first: `ValueError` if one of `evaluation.facts` was never
        committed, and for values that `rows.evaluation_columns` refuses. `KeyError` if the session was not
        begun here or has ended.
        """
        return self.commit_evaluations(session_id, [(problem, config, evaluation)]) == 1

    def commit_evaluations(self, session_id: int, found: Sequence[Found]) -> int:
        """`commit_evaluation` for all that became known at the same moment, in one transaction; how many were new.

        All of them or, when one is refused, none.
        """
        columns = [rows.evaluation_columns(evaluation) for _, _, evaluation in found]
        with self._write() as session:
            evaluations.insert_inputs(session, found)
            new = evaluations.insert_evaluations(session, session_id, found, columns)
            self._count_seconds(session, session_id)
        return new

    def evaluations(
        self,
        problem: Problem,
        *,
        stage: Stage | None = None,
        judge: str | None = None,
        config: Config | None = None,
    ) -> list[Record]:
        """All that is known about one problem, oldest first; of one stage, judge or config if asked."""
        wanted = [EvaluationRow.problem_sha == problem.sha]
        if stage is not None:
            wanted.append(EvaluationRow.stage == stage.value)
        if judge is not None:
            wanted.append(EvaluationRow.judge == judge)
        if config is not None:
            wanted.append(EvaluationRow.config_sha == config.sha)
        with self._read() as session:
            return [record for _, _, record in evaluations.read(session, *wanted)]

    def evaluations_of_others(
        self, session_id: int, problems: Sequence[Problem], after: int
    ) -> tuple[list[tuple[Problem, Record]], int]:
        """What other sessions have stored about `problems` after the evaluation numbered `after`, oldest first, and the
        number to ask with the next time: that of the newest one, of whatever problem, so that none is looked at
        twice."""
        by_sha = {problem.sha: problem for problem in problems}
        row = EvaluationRow
        with self._read() as session:
            newest = session.scalar(select(func.max(row.id))) or 0
            if newest <= after:
                return [], after
            theirs = row.session_id != session_id, row.problem_sha.in_(by_sha)
            found = list(evaluations.read(session, row.id > after, row.id <= newest, *theirs))
        return [(by_sha[sha], record) for _, sha, record in found], newest

    def newest_evaluation(self) -> int:
        """The number of the evaluation that was stored last; 0 when there is none."""
        with self._read() as session:
            return session.scalar(select(func.max(EvaluationRow.id))) or 0

    # -- claims ---------------------------------------------------------------------------------------------

    def claim(self, session_id: int, works: Collection[str]) -> set[str]:
        """Say that a session is about to find out `works` (shas of anything); those that nobody else is at.

        A claim holds for `claims.LEASE_S` seconds unless renewed, and no longer than its process.
        """
        with self._write() as session:
            return claims.take(session, session_id, works)

    def renew_claims(self, session_id: int) -> None:
        """Let the claims of a session hold for another lease."""
        with self._write() as session:
            claims.renew(session, session_id)

    def release_claims(self, session_id: int, works: Collection[str] | None = None) -> None:
        """Give up the claims of a session on these works, or on all for None."""
        with self._write() as session:
            claims.release(session, session_id, works)

    # -- verifications --------------------------------------------------------------------------------------

    @staticmethod
    def signature(problem: Problem) -> str:
        """What a verification holds for: the sha of the problem without rows and context."""
        return identity.signature(problem)

    def commit_verification(self, problem: Problem, config: Config, verification: Verification) -> bool:
        """Keep a verdict of the gate. Identity: the problem's signature, config, source and what ran it.

        A TIMEOUT speaks of the machine and its deadline, not of the kernel: a later verdict replaces it. So does one
        on machine code that another compiler made.
        """
        row = VerificationRow
        columns = {
            "signature": identity.signature(problem),
            "config_sha": config.sha,
            **rows.verification_columns(verification),
        }
        same = [
            getattr(row, name) == columns[name] for name in ("signature", "config_sha", "source_sha", "ran_on")
        ]
        with self._write() as session:
            evaluations.insert_problem(session, problem)
            evaluations.insert_config(session, config)
            outdated = row.status == Status.TIMEOUT.value
            if verification.on == MACHINE_CODE:
                compiler = func.coalesce(row.environment["compiler"].as_string(), "")
                outdated = or_(outdated, compiler != str(verification.environment.get("compiler", "")))
            session.execute(delete(row).where(*same, outdated))
            return dialect.insert_new(session, VerificationRow.id, columns) is not None

    def verification(
        self, problem: Problem, config: Config, source_sha: str, *, at_least: str = INTERPRETER
    ) -> Verification | None:
        """The verdict on one source, from the strongest thing that ran it: GPU, machine code, interpreter. Nothing
        weaker than `at_least` counts."""
        row = VerificationRow
        query = (
            select(row)
            .where(row.signature == identity.signature(problem))
            .where(row.config_sha == config.sha, row.source_sha == source_sha)
            .where(row.ran_on.in_(place.at_least(at_least)))
            .order_by(winners.strength(), row.id.desc())
            .limit(1)
        )
        with self._read() as session:
            found = session.scalar(query)
            return rows.verification_value(found) if found else None

    # -- the whole ------------------------------------------------------------------------------------------

    def winners(self, *, arch: str | None = None, op: str | None = None) -> list[Winner]:
        """Per problem the best evaluation whose candidate is verified, in the order of the problems.

        Measured before predicted, then the newest judge, then as `evaluate.ranking` says.
        """
        with self._read() as session:
            return winners.winners(session, arch=arch, op=op)

    def verified(self, *, arch: str | None = None, op: str | None = None) -> list[list[Winner]]:
        """Per problem, in their order, the winner and after it the other verified candidates of the same stage and
        judge, the best first."""
        with self._read() as session:
            return winners.verified(session, arch=arch, op=op)

    def problems(self, *, arch: str | None = None, op: str | None = None) -> list[Problem]:
        """All problems that were evaluated, or those of one architecture or op, in their order."""
        with self._read() as session:
            return history.problems(session, arch=arch, op=op)

    def sessions(self, *, arch: str | None = None, op: str | None = None) -> list[SessionRecord]:
        """All sessions, or those on a problem of one architecture or op, oldest first."""
        with self._read() as session:
            return history.sessions(session, arch=arch, op=op)

    def failures(self, *, arch: str | None = None, op: str | None = None) -> list[FailureCount]:
        """Failed candidates by stage, status and rule, those of the gate too, the most frequent first."""
        with self._read() as session:
            return history.failures(session, arch=arch, op=op)

    def check(self) -> list[str]:
        """Faults of the file and of what is in it, one a line; empty if it is sound."""
        with self._read() as session:
            found = dialect.damage(session.connection(), thorough=True)
            return found or list(logical_faults(session))

    def info(self) -> Info:
        """What the database holds, in numbers."""
        path = self.location.path
        with self._read() as session:
            return info(session, path.stat().st_size if path else None)

    def merge(self, other: Store) -> Merged:
        """Every row of another store that this one does not have, in one transaction."""
        with other._read() as source, self._write() as target:
            return union.merge(source, target)

    def prune(self, judges: Collection[str] | None = None, *, dry_run: bool = False) -> Pruned:
        """Take out the evaluations of these judges; by default those of older versions of a judge on problems that a
        newer one has judged. What nothing refers to any more goes too. `dry_run` only counts."""
        with self._write() as session:
            gone = prune.superseded(session) if judges is None else prune.judged_by(session, judges)
            pruned = prune.prune(session, gone)
            if dry_run:
                session.rollback()
        return pruned

    def vacuum(self) -> tuple[int, int]:
        """Write the file anew without its holes; its size in bytes before and after (0 and 0 on a server)."""
        path = self.location.path
        before = path.stat().st_size if path else 0
        with faults.as_user_errors(self.location):
            dialect.vacuum(self._engine)
        return before, path.stat().st_size if path else 0

    @contextmanager
    def _read(self) -> Iterator[Session]:
        with faults.as_user_errors(self.location), self._reads.begin() as session:
            yield session

    @contextmanager
    def _write(self) -> Iterator[Session]:
        with faults.as_user_errors(self.location), self._writes.begin() as session:
            yield session
