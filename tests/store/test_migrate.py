from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from m3gen.errors import UserError
from m3gen.store import Store
from m3gen.store import migrate as module
from m3gen.store.migrations import HEAD
from m3gen.store.models import Base
from tests.store import samples

FROZEN = Path(__file__).parent / "frozen"


def execute(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def test_head_is_the_newest_script() -> None:
    assert ScriptDirectory.from_config(module._alembic()).get_heads() == [HEAD]


def test_migrations_make_what_the_models_say(store: Store) -> None:
    with create_engine(f"sqlite:///{store.location}").connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


@pytest.mark.parametrize("dump", sorted(FROZEN.glob("*.sql")), ids=lambda path: path.stem)
def test_every_released_schema_opens_and_keeps_its_rows(dump: Path, tmp_path: Path) -> None:
    """A dump holds one row of each kind, written by the release that had the schema."""
    execute(tmp_path / "old.db", dump.read_text())
    with Store.open(f"sqlite:///{tmp_path / 'old.db'}") as store:
        assert store.check() == []
        (winner,) = store.winners()
        assert winner.problem == samples.problem()
        assert winner.config == samples.config()
        assert winner.evaluation == samples.predicted(12.5, facts=("key-0", "key-0"))
        assert winner.verification == samples.verified()
        assert store.facts("key-0") == samples.facts()
        assert (store.traces("trace-0") is not None) == (dump.stem >= "0002")  # the first schema had none


def test_opening_again_changes_nothing(url: str) -> None:
    for _ in range(2):
        with Store.open(url) as store:
            assert store.check() == []


def test_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        assert store.check() == []


@pytest.mark.parametrize("read_only", [False, True])
def test_newer_schema_is_refused(url: str, tmp_path: Path, read_only: bool) -> None:
    Store.open(url).close()
    path = tmp_path / "store.db"
    execute(path, "UPDATE alembic_version SET version_num = '9999'")
    content = path.read_bytes()
    with pytest.raises(UserError, match=r"'9999'.*a newer m3gen wrote it; upgrade m3gen"):
        Store.open(url, read_only=read_only)
    assert path.read_bytes() == content


@pytest.mark.parametrize("read_only", [False, True])
def test_database_of_something_else_is_left_alone(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "other.db"
    execute(path, "CREATE TABLE cookies (name TEXT)")
    content = path.read_bytes()
    with pytest.raises(UserError, match=r"something else.*'cookies'"):
        Store.open(f"sqlite:///{path}", read_only=read_only)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_missing_table_is_damage(url: str, tmp_path: Path) -> None:
    Store.open(url).close()
    execute(tmp_path / "store.db", "DROP TABLE launches")
    with pytest.raises(UserError, match=r"'launches' is gone.*move it aside"):
        Store.open(url)


def test_failed_upgrade_leaves_nothing_behind(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def create_half(connection: object, *_: object) -> None:
        connection.exec_driver_sql("CREATE TABLE problems (sha TEXT)")  # type: ignore[attr-defined]
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_upgrade", create_half)
        with pytest.raises(RuntimeError, match="killed"):
            Store.open(url)
    with Store.open(url) as store:
        assert store.check() == []


def test_reader_asks_for_a_store_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no store at"):
        Store.open(f"sqlite:///{tmp_path / 'none.db'}", read_only=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    with pytest.raises(UserError, match="is empty"):
        Store.open(f"sqlite:///{tmp_path / 'empty.db'}", read_only=True)
