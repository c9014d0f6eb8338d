"""`Store`: everything that was found out, one row the moment it is known."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from sqlalchemy import Engine, bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session, sessionmaker

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate import place
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.place import INTERPRETER, MACHINE_CODE
from m3gen.evaluate.verification import Verification
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store import dialect, faults, history, identity, prune, rows, union, winners
from m3gen.store.check import logical_faults
from m3gen.store.engine import open_engine
from m3gen.store.info import Info, info
from m3gen.store.location import Location
from m3gen.store.migrate import migrate, require_current, require_ours
from m3gen.store.models import (
    ConfigRow,
    EvaluationRow,
    FactsRow,
    LaunchRow,
    ProblemRow,
    SessionProblemRow,
    SessionRow,
    VerificationRow,
)
from m3gen.store.prune import Pruned
from m3gen.store.records import FailureCount, Record, SessionRecord, Winner
from m3gen.store.union import Merged

_UPDATE_SESSION = update(SessionRow).where(SessionRow.id == bindparam("session"))
RUNNING = "running"  # the state of a session that has not ended, or was killed


class Store:
    """A database of evaluations, opened by `Store.open`.

    Every `commit_...` is one transaction that is on the disk when it returns: True if it was new, False if a
    row of that identity was there, which is then left as it is. Every method raises `UserError` for what the
    user can mend (full disk, read-only or damaged file, a lock that is not let go).
    """

    def __init__(self, engine: Engine, location: Location) -> None:
        self.location = location
        self._engine = engine
        self._reads = sessionmaker(engine)
        self._writes = sessionmaker(dialect.writing(engine))
        self._begun: dict[int, float] = {}  # session -> monotonic seconds at its begin

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
                _insert_problem(session, problem)
                session.add(SessionProblemRow(session_id=number, problem_sha=problem.sha))
        self._begun[number] = time.monotonic()
        return number

    def end(self, session_id: int, state: str) -> None:
        """Note how a session ended, in a word or two. `KeyError` if it was not begun here or has ended."""
        with self._write() as session:
            self._count_seconds(session, session_id, state=state, ended_at=rows.now())
        del self._begun[session_id]

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

    # -- evaluations ----------------------------------------------------------------------------------------

    def commit_evaluation(self, session_id: int, problem: Problem, config: Config, evaluation: Evaluation) -> bool:
        """Keep what one rung found out about one candidate, and how long the session has run.

        Identity: problem, config, stage, judge, compiler and source. The compiler's fingerprint is that of
        the facts, or `environment["compiler"]` without facts; the source is `environment["source_sha"]`;
        either may be missing. The facts come first: `ValueError` if one of `evaluation.facts` was never
        committed, and for values that `rows.evaluation_columns` refuses. `KeyError` if the session was not
        begun here or has ended.
        """
        columns = rows.evaluation_columns(evaluation)
        with self._write() as session:
            _insert_problem(session, problem)
            _insert_config(session, config)
            columns |= {
                "session_id": session_id,
                "problem_sha": problem.sha,
                "config_sha": config.sha,
                "compiler": _compiler(session, evaluation),
                "source_sha": str(evaluation.environment.get("source_sha", "")),
            }
            number = dialect.insert_new(session, EvaluationRow.id, columns)
            if number is None:
                return False
            for position, key in enumerate(evaluation.facts):
                launch = {"evaluation_id": number, "position": position, "facts_key": key}
                dialect.insert_new(session, LaunchRow.position, launch)
            self._count_seconds(session, session_id)
        return True

    def evaluations(
        self, problem: Problem, *, stage: Stage | None = None, judge: str | None = None
    ) -> list[Record]:
        """All that is known about one problem, oldest first; of one stage or judge if asked."""
        row = EvaluationRow
        query = (
            select(row.id, ConfigRow.config, row.created_at, *rows.EVALUATION)
            .join(ConfigRow, ConfigRow.sha == row.config_sha)
            .where(row.problem_sha == problem.sha)
            .order_by(row.id)
        )
        launches = (
            select(LaunchRow.evaluation_id, LaunchRow.facts_key)
            .join(row, row.id == LaunchRow.evaluation_id)
            .where(row.problem_sha == problem.sha)
            .order_by(LaunchRow.evaluation_id, LaunchRow.position)
        )
        if stage is not None:
            query = query.where(row.stage == stage.value)
        if judge is not None:
            query = query.where(row.judge == judge)
        with self._read() as session:
            facts = rows.by_evaluation(session.execute(launches))
            return [
                Record(
                    config=Config(config),
                    evaluation=rows.evaluation_value(columns, facts.get(number, ())),
                    created_at=created_at,
                )
                for number, config, created_at, *columns in session.execute(query)
            ]

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
            _insert_problem(session, problem)
            _insert_config(session, config)
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


def _insert_problem(session: Session, problem: Problem) -> None:
    dialect.insert_new(session, ProblemRow.sha, rows.problem_columns(problem))


def _insert_config(session: Session, config: Config) -> None:
    dialect.insert_new(session, ConfigRow.sha, rows.config_columns(config))


def _compiler(session: Session, evaluation: Evaluation) -> str:
    """Fingerprint of the compiler an evaluation holds for; `ValueError` if its facts were never committed."""
    keys = set(evaluation.facts)
    stored = dict(session.execute(select(FactsRow.key, FactsRow.compiler).where(FactsRow.key.in_(keys))).all())
    if missing := sorted(keys - stored.keys()):
        raise ValueError(f"the facts {missing[0]} of an evaluation are not in the store: commit them first")
    return stored[evaluation.facts[0]] if keys else str(evaluation.environment.get("compiler", ""))
