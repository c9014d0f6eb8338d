from __future__ import annotations

import math
import sys
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.errors import UserError
from m3gen.store import Store, dialect
from m3gen.store.engine import from_json, to_json

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@given(PLAIN)
def test_json_keeps_every_value(value: object) -> None:
    assert from_json(to_json(value)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_stays_json_whatever_the_number(value: float) -> None:
    text = to_json({"cases": [{"row_rms": value}]})
    assert "NaN" not in text
    assert "Infinity" not in text
    found = from_json(text)["cases"][0]["row_rms"]
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_json_takes_views() -> None:
    assert from_json(to_json({"mix": MappingProxyType({"load": 4}), "widths": (1, 2)})) == {
        "mix": {"load": 4},
        "widths": [1, 2],
    }


def test_json_refuses_objects() -> None:
    with pytest.raises(TypeError):
        to_json({"path": Path("/")})


def test_folder_is_made(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/of/many/levels/store.db").close()
    assert (tmp_path / "of/many/levels/store.db").is_file()


def test_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot make the folder"):
        Store.open(f"sqlite:///{tmp_path}/file/store.db")


def test_folder_where_the_file_should_be(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        Store.open(f"sqlite:///{tmp_path}")


def test_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(UserError, match="needs the Python package psycopg2") as refusal:
        Store.open("postgresql+psycopg2://me:secret@host/db")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("url", ["sqlite+nosuch:///store.db", "postgresql+nosuch://host/db"])
def test_unknown_driver(url: str) -> None:
    with pytest.raises(UserError, match="nosuch"):
        Store.open(url)


def test_memory() -> None:
    with Store.open("sqlite://") as store:
        assert store.check() == []


NORMAL, FULL = 1, 2  # https://www.sqlite.org/pragma.html#pragma_synchronous


def test_without_the_log_every_commit_is_synced(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems cannot have it: there only FULL keeps the file whole in a power cut."""
    monkeypatch.setattr(dialect, "_switch_to_log", lambda driver: False)
    with Store.open(url) as store, store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == FULL


def test_every_connection_has_its_pragmas(store: Store) -> None:
    with store._engine.connect() as first, store._engine.connect() as second:
        for connection in (first, second):
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= 10_000
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == NORMAL
