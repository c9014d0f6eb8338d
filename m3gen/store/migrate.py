"""Bring a database to the schema that this m3gen knows, once, however many processes open it at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from m3gen.errors import UserError
from m3gen.store import dialect, faults
from m3gen.store.location import Location
from m3gen.store.migrations import HEAD
from m3gen.store.models import Base

if TYPE_CHECKING:  # alembic is slow to import, and only an upgrade needs it
    from alembic.config import Config

_VERSIONS = "alembic_version"


def migrate(engine: Engine, location: Location) -> None:
    """Create or upgrade the schema under the write lock; a half-done upgrade is rolled back.

    `UserError` for a database that a newer m3gen wrote, that is something else's, or that cannot be written.
    """
    with dialect.writing(engine).begin() as connection:
        dialect.lock_for_upgrade(connection)
        revision = require_ours(connection, location)
        if revision == HEAD:
            _check_tables(connection, location)
            # Finds a read-only database now and not after the first hour of work.
            connection.execute(text(f"UPDATE {_VERSIONS} SET version_num = version_num"))
        else:
            _upgrade(connection)


def require_current(engine: Engine, location: Location) -> None:
    """`UserError` unless the schema is the one this m3gen knows: a reader changes nothing."""
    with engine.connect() as connection:
        revision = require_ours(connection, location)
        if revision is None:
            raise UserError(f"{location} is empty: tune something first, or name another store")
        if revision != HEAD:
            raise UserError(f"{location} has the older schema {revision}: tune once with it to upgrade it")
        _check_tables(connection, location)


def require_ours(connection: Connection, location: Location) -> str | None:
    """The schema's revision, None if the database is empty; nothing is changed.

    `UserError` for a database that a newer m3gen wrote or that is something else's.
    """
    revision = _revision(connection, location)
    if revision not in (None, HEAD) and revision not in _known():
        raise UserError(
            f"{location} has the schema {revision!r} and this m3gen knows up to {HEAD!r}: "
            "a newer m3gen wrote it; upgrade m3gen or name another store"
        )
    return revision


def _revision(connection: Connection, location: Location) -> str | None:
    tables = set(inspect(connection).get_table_names())
    if _VERSIONS in tables:
        revision: str | None = connection.execute(text(f"SELECT version_num FROM {_VERSIONS}")).scalar()
        if revision is not None:
            return revision
        tables.remove(_VERSIONS)
    if tables:
        raise UserError(
            f"{location} is the database of something else (it has a table {min(tables)!r}): name another store"
        )
    return None


def _check_tables(connection: Connection, location: Location) -> None:
    missing = Base.metadata.tables.keys() - set(inspect(connection).get_table_names())
    if missing:
        raise faults.damaged(location, f"the table {min(missing)!r} is gone")


def _upgrade(connection: Connection) -> None:
    from alembic import command

    config = _alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _known() -> set[str]:
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(_alembic()).walk_revisions()}


def _alembic() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "m3gen.store:migrations")
    return config
