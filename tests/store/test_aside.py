"""A damaged store is no end: it is put aside, whole, and told."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.store import Store
from m3gen.store.aside import open_or_set_aside
from tests.store.samples import problem, start


def damage(path: Path) -> bytes:
    """A store of which the middle is gone."""
    with Store.open(f"sqlite:///{path}") as store:
        for rows in (1, 2, 4, 8):
            store.begin({"rows": rows}, [problem(rows=rows)])
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("name", ["store.db", "tuning"])
def test_the_old_file_is_kept_and_the_run_goes_on(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = damage(path)
    told: list[str] = []
    with open_or_set_aside(f"sqlite:///{path}", told.append) as store:
        assert store.sessions() == []
        assert store.check() == []
    [line] = told
    [aside] = tmp_path.glob(f"{name}.damaged-????????T??????.??????")
    assert str(aside) in line
    assert aside.read_bytes() == data


def test_a_database_with_a_broken_head(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"\0" * 8192)
    told: list[str] = []
    open_or_set_aside(f"sqlite:///{path}", told.append).close()
    assert len(told) == 1


def test_a_file_that_is_no_database_stays_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Something else\n" * 500)
    with pytest.raises(UserError, match="no SQLite database"):
        open_or_set_aside(f"sqlite:///{path}", pytest.fail)
    assert path.read_text().startswith("# Something else")


def test_a_database_of_something_else_stays_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE people (name TEXT)")
    with pytest.raises(UserError, match="something else"):
        open_or_set_aside(f"sqlite:///{path}", pytest.fail)
    assert path.exists()


def test_a_store_of_a_newer_m3gen_stays_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store.open(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UserError, match="a newer m3gen wrote it"):
        open_or_set_aside(f"sqlite:///{path}", pytest.fail)


def test_of_many_that_find_the_damage_one_sets_it_aside(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    damage(path)
    script = (
        "import sys\nfrom m3gen.store.aside import open_or_set_aside\nfrom m3gen.spec import Problem\n"
        "store = open_or_set_aside(sys.argv[1], print)\n"
        "store.begin({'process': sys.argv[2]}, [Problem(op='sparse_decode', arch='gfx942', compute_units=304)])\n"
    )
    processes = [start(script, f"sqlite:///{path}", number) for number in range(4)]
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, ended
    assert sum(out.count("set aside") for out, _ in ended) == 1
    with Store.open(f"sqlite:///{path}") as store:
        assert len(store.sessions()) == 4
