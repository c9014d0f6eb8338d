"""What can go wrong with a database outside m3gen, told in one line: what, where, what to do next."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from m3gen.errors import UserError
from m3gen.store.location import Location

_DAMAGED = (
    "{where} is damaged or no SQLite database ({detail}): move it aside with its log, if it has one "
    "(mv {where} {where}.damaged; mv {where}-wal {where}.damaged-wal), and run again to start a new one; "
    "nothing has been deleted"
)
_FULL = (
    "the disk is full, {where} cannot grow: free some space and run again; all that was committed before is kept"
)
_READ_ONLY = (
    "{where} cannot be written (file, folder or file system is read-only): make it writable or name another store"
)
_CANNOT_OPEN = (
    "{where} cannot be opened ({detail}): it must be a file that this user may read, in a folder that this "
    "user may write (SQLite keeps two files beside it); mend that or name another store"
)
_DISK_FAILS = (
    "the disk under {where} fails ({detail}): look for a full or broken disk or a quota, then run again; "
    "all that was committed before is kept"
)
_LOCKED = (
    "{where} is locked by another process that does not let go: end it (fuser {where} names it) and run again"
)
_ANSWERS_NOT = "the database {where} does not answer ({detail}): see that it runs and that the URL is right"

_BY_CODE = {
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _CANNOT_OPEN,
    sqlite3.SQLITE_IOERR: _DISK_FAILS,
    sqlite3.SQLITE_BUSY: _LOCKED,
}
_BY_SQLSTATE = {"53100": _FULL, "25006": _READ_ONLY}  # PostgreSQL's disk_full, read_only_sql_transaction


class Damaged(UserError):
    """The file is not what m3gen, or SQLite, wrote."""


class NoRoom(UserError):
    """The disk takes no more, or fails."""


_KINDS: Mapping[str | None, type[UserError]] = {_DAMAGED: Damaged, _FULL: NoRoom, _DISK_FAILS: NoRoom}


@contextmanager
def as_user_errors(location: Location) -> Iterator[None]:
    """Turn the faults that a user can mend into `UserError`; the faults of m3gen pass through."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        if (message := explain(error, location)) is None:
            raise
        raise _KINDS.get(_template(error), UserError)(message) from error


def explain(error: DBAPIError | sqlite3.Error, location: Location) -> str | None:
    """The line for the user, or None for a fault that no user can cause."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not (template := _template(error)):
        return None
    return template.format(where=location, detail=next(iter(str(cause).splitlines()), ""))


def _template(error: DBAPIError | sqlite3.Error) -> str | None:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        # Extended codes keep the primary one in their low byte; errors of the driver itself have none.
        return _BY_CODE.get(getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF)
    unreachable = isinstance(error, OperationalError | InterfaceError)
    return _BY_SQLSTATE.get(getattr(cause, "sqlstate", None) or "", _ANSWERS_NOT if unreachable else None)


def damaged(location: Location, detail: str) -> Damaged:
    """The refusal of a file whose content is not what m3gen wrote."""
    return Damaged(_DAMAGED.format(where=location, detail=detail))
