"""A damaged file put aside under a name that is told, so that it is not the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from m3gen.errors import UserError
from m3gen.store.faults import Damaged
from m3gen.store.location import Location
from m3gen.store.store import Store
from m3gen.tables.files import writing

_MAGIC = b"SQLite format 3\0"
_OURS = (".db", ".sqlite", ".sqlite3")
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file, and is of no use without it


def open_or_set_aside(url: str, say: Callable[[str], None]) -> Store:
    """`Store.open`, in the place of a damaged file with a new one; `say` is told where the old one is.

    A file that is neither SQLite's by its first bytes nor named as a database stays, for it may be anything else:
    then `UserError`, as for whatever else is wrong.
    """
    try:
        return Store.open(url)
    except Damaged:
        location = Location.parse(url)
        if location.path is None or not _is_a_store(location.path):
            raise
        with writing(location.path.absolute().parent):  # of two that find the damage, the second finds a new file
            with suppress(Damaged):
                return Store.open(url)
            aside = _set_aside(location.path)
            say(f"{location} is damaged and was set aside as {aside}: this run starts with a new store")
            return Store.open(url)


def _is_a_store(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.suffix in _OURS or file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _set_aside(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    try:
        path.rename(aside)
        for suffix in _BESIDE:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise UserError(
            f"{path} is damaged and cannot be moved aside ({error.strerror}): move it yourself or name another store"
        ) from None
    return aside
