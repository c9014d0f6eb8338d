"""All that differs between SQLite and PostgreSQL: beginning, locking, inserting what is new, self-checks."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Row, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

BUSY_TIMEOUT_S = 30.0  # a commit takes milliseconds: whoever waits this long waits for a stopped process
_WRITES = "m3gen_writes"
_UPGRADE_LOCK = 0x6D3367656E  # "m3gen": PostgreSQL's advisory locks are numbers


def prepare(engine: Engine) -> None:
    """Make every connection of the engine behave: pragmas, and transactions that begin as `writing` says."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure)
        event.listen(engine, "begin", _begin)


def writing(engine: Engine) -> Engine:
    """The same engine, whose transactions take the write lock as they begin.

    A SQLite transaction that starts by reading and then writes fails at once if another wrote in between,
    without waiting for the busy timeout.
    """
    return engine.execution_options(**{_WRITES: True})


def reading(engine: Engine) -> Engine:
    """The same engine, whose transactions cannot write. On SQLite the URL says so (mode=ro)."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(postgresql_readonly=True)
    return engine


def _configure(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # sqlite3 must not begin transactions of its own
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")


def _trust_log(connection: sqlite3.Connection, _record: object) -> None:
    # A commit outlives the death of any process; a power cut may take the last seconds, never the file.
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def use_write_ahead_log(engine: Engine) -> None:
    """Let readers and the writer of a SQLite file work side by side. Kept in the file; a no-op elsewhere.

    Switching needs the file alone and fails at once where another process writes, so this waits. A file
    system that cannot (some network mounts) keeps the rollback journal, which is slower and as safe.
    """
    if engine.dialect.name != "sqlite":
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        in_use = _switch_to_log(driver)
    if in_use:
        event.listen(engine, "connect", _trust_log)
        engine.dispose()  # the connections of before


def _switch_to_log(driver: sqlite3.Connection) -> bool:
    give_up = time.monotonic() + BUSY_TIMEOUT_S
    while driver.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            return bool(driver.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
    return True


def vacuum(engine: Engine) -> None:
    """Give back the space of rows that are gone."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            driver.execute("VACUUM")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            connection.exec_driver_sql("VACUUM")


def begin_log_anew(engine: Engine) -> None:
    """Write SQLite's log into the database, so that what comes next takes the place of what is in it."""
    if engine.dialect.name == "sqlite":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.execute("PRAGMA wal_checkpoint(RESTART)")


def lock_for_upgrade(connection: Connection) -> None:
    """Hold off other upgraders until the transaction ends. On SQLite its write lock already does."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")


def insert_new(session: Session, key: InstrumentedAttribute[Any], values: Mapping[str, Any]) -> Any | None:
    """Insert a row unless one with the same identity is there; its `key` if it is new, else None.

    `values` are by the names of the columns.
    """
    connection = session.connection()
    return connection.execute(_insert_new(connection.dialect.name, key), values).scalar_one_or_none()


def insert_all_new(
    session: Session, returned: tuple[InstrumentedAttribute[Any], ...], values: Sequence[Mapping[str, Any]]
) -> Sequence[Row[Any]]:
    """Insert those rows whose identity is not there yet; the `returned` columns of each that was, in any order."""
    connection = session.connection()
    return connection.execute(_insert_new(connection.dialect.name, *returned), values).all() if values else ()


def now_s(session: Session) -> float:
    """Unix time by the clock that all who use the database share: the server's, or this machine's."""
    if session.connection().dialect.name == "postgresql":
        return float(
            session.connection().exec_driver_sql("SELECT extract(epoch from clock_timestamp())").scalar_one()
        )
    return time.time()


@cache
def _insert_new(dialect: str, *returned: InstrumentedAttribute[Any]) -> Executable:
    # Built once and of the bare table: a statement takes longer to build than to run.
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(returned[0].class_.__table__).on_conflict_do_nothing().returning(*returned)


def damage(connection: Connection, *, thorough: bool = False) -> list[str]:
    """What the database's own check finds wrong in the file; `thorough` reads indexes and references, too."""
    if connection.dialect.name != "sqlite":
        return []  # PostgreSQL checks pages and references as it goes
    check = "integrity_check" if thorough else "quick_check"
    faults = [str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA {check}") if row[0] != "ok"]
    if thorough:
        faults += [
            f"{table} row {row} refers to a row of {parent} that is not there"
            for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check")
        ]
    return faults
