"""From a location to a SQLAlchemy engine whose connections behave."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Mapping
from typing import Any

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import StaticPool

from m3gen.errors import UserError
from m3gen.store import dialect
from m3gen.store.location import EXAMPLES, Location

_NUMBER = "$number"  # {"$number": "nan"}: JSON has no word for it, and PostgreSQL refuses Python's
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def open_engine(location: Location, *, read_only: bool) -> Engine:
    """An engine on the database; the folder of a SQLite file is made unless `read_only`."""
    if location.path is None:
        engine = _create(location.url)
        return dialect.reading(engine) if read_only else engine
    if not read_only:
        _make_folder(location)
        return _create(location.file_url(mode="rwc"))
    if not location.path.exists():
        raise UserError(f"there is no store at {location}: tune something first, or name another store")
    return _open_read_only(location)


def _open_read_only(location: Location) -> Engine:
    """Read a file in a folder that may itself be read-only.

    The write-ahead log needs files beside the database. Where they cannot be made and there is no log to
    read, nobody can be writing either, and SQLite may take the file as it is.
    """
    assert location.path is not None
    engine = _create(location.file_url(mode="ro"))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        return engine
    except DBAPIError as error:
        engine.dispose()
        code = error.orig.sqlite_errorcode & 0xFF if isinstance(error.orig, sqlite3.Error) else 0
        cannot_make_log = code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if not cannot_make_log or not os.access(location.path, os.R_OK) or _log_size(location):
            raise
    return _create(location.file_url(mode="ro", immutable="1"))


def _log_size(location: Location) -> int:
    try:
        return os.path.getsize(f"{location.path}-wal")
    except FileNotFoundError:
        return 0


def _make_folder(location: Location) -> None:
    assert location.path is not None
    folder = location.path.absolute().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder {folder} for the store ({error.strerror}): "
            "make it yourself or name another store"
        ) from error
    if location.path.is_dir():
        raise UserError(f"{location} is a folder, not a store: name a file in it")


def _create(url: URL) -> Engine:
    # One connection is all that a database in memory has.
    memory: dict[str, Any] = (
        {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
        if url.get_backend_name() == "sqlite" and "uri" not in url.query
        else {}
    )
    try:
        engine = create_engine(url, json_serializer=to_json, json_deserializer=from_json, **memory)
    except ModuleNotFoundError as error:
        package = "psycopg[binary]" if error.name == "psycopg" else error.name
        raise UserError(
            f"{url.render_as_string()} needs the Python package {error.name}: pip install '{package}'"
        ) from error
    except ArgumentError as error:
        raise UserError(f"no driver for {url.drivername!r}: expected {EXAMPLES}") from error
    if engine.dialect.is_async:
        raise UserError(f"{url.drivername!r} is a driver for asyncio: expected {EXAMPLES}")
    dialect.prepare(engine)
    return engine


def to_json(value: Any) -> str:
    """JSON of plain data, every float kept: NaN and infinities become {"$number": "nan"}."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError):
        return _ENCODER.encode(_plain(value))


def from_json(text: str | bytes) -> Any:
    """Inverse of `to_json`; bytes are what psycopg hands over."""
    if isinstance(text, bytes):
        text = text.decode()
    return json.loads(text, object_hook=_number if _NUMBER in text else None)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: repr(value)}
    return value


def _number(found: dict[str, Any]) -> Any:
    return float(found[_NUMBER]) if found.keys() == {_NUMBER} else found
