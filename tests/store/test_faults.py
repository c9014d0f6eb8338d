"""Every bad state is one line for the user, and nothing that was committed is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.store import Store, dialect
from tests.store import samples
from tests.store.samples import config, predicted, problem

OPEN = """
import sys
from m3gen.errors import UserError
from m3gen.store import Store
from tests.store.samples import problem

try:
    with Store.open(sys.argv[1], read_only=sys.argv[2] == "read") as store:
        print("open", len(store.evaluations(problem())), store.check())
except UserError as error:
    print(error)
"""

FILL = """
import sys
from m3gen.errors import UserError
from m3gen.store import Store
from tests.store.samples import config, predicted, problem

if len(sys.argv) > 2:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
store = Store.open(sys.argv[1])
session = store.begin({}, [problem()])
try:
    for done in range(10_000):
        store.commit_evaluation(session, problem(), config(done), predicted(5.0, reason="x" * 2000))
except UserError as error:
    print(done)
    print(error)
store.close()
"""

END = """
import sys
from m3gen.errors import UserError
from m3gen.store import Store
from tests.store.samples import config, predicted, problem

if len(sys.argv) > 2:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
store = Store.open(sys.argv[1])
session = store.begin({}, [problem()])
assert store.claim(session, ["work"]) == {"work"}
try:
    for done in range(10_000):
        store.commit_evaluation(session, problem(), config(done), predicted(5.0, reason="x" * 2000))
except UserError:
    print(done)
try:
    while True:
        store.renew_claims(session)  # a page each, until there is no room for one
except UserError as error:
    print(error)
store.end(session, "failed")
store.close()
"""


def one_line(error: BaseException | str) -> str:
    text = str(error)
    assert "\n" not in text.strip()
    return text


def fill(url: str, count: int) -> None:
    with Store.open(url) as store:
        session = store.begin({}, [problem()])
        for number in range(count):
            store.commit_evaluation(session, problem(), config(number), predicted(5.0))


# -- damaged files


def test_not_a_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"these are my notes\n" * 500)
    with pytest.raises(UserError, match=f"{path} is damaged or no SQLite database.*mv {path} ") as refusal:
        Store.open(f"sqlite:///{path}")
    one_line(refusal.value)
    assert path.read_bytes() == b"these are my notes\n" * 500


@pytest.mark.parametrize("read_only", [False, True])
def test_pages_overwritten(url: str, tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "store.db"
    fill(url, 50)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"{path} is damaged.*move it aside.*nothing has been deleted") as refusal:
        Store.open(url, read_only=read_only)
    one_line(refusal.value)
    assert path.read_bytes() == content


def test_damage_that_opening_would_not_meet(url: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(url, 50)
    with sqlite3.connect(path) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'evaluations'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"):
        Store.open(url)


def test_file_cut_short(url: str, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(url, 50)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(UserError, match="is damaged"):
        Store.open(url)


# -- read-only files and folders, as a user sees them who is not root


@pytest.fixture
def shared(public_folder: Path) -> Path:
    """A store of three evaluations that every user may read."""
    path = public_folder / "store.db"
    fill(f"sqlite:///{path}", 3)
    path.chmod(0o644)
    return path


def open_unprivileged(path: Path, how: str) -> str:
    return one_line(samples.run_unprivileged(OPEN, f"sqlite:///{path}", how))


def test_read_only_folder_is_refused_for_writing(shared: Path) -> None:
    shared.parent.chmod(0o555)
    shared.chmod(0o444)
    said = open_unprivileged(shared, "write")
    assert str(shared) in said
    assert "name another store" in said


def test_read_only_folder_is_read(shared: Path) -> None:
    shared.parent.chmod(0o555)
    shared.chmod(0o444)
    assert open_unprivileged(shared, "read") == "open 3 []\n"
    assert [path.name for path in shared.parent.iterdir()] == ["store.db"]


def test_read_only_folder_with_an_unread_log_is_not_half_read(shared: Path) -> None:
    """What is in the log of a killed session must not be missed in silence."""
    connection = sqlite3.connect(shared)
    connection.execute("DELETE FROM evaluations")
    connection.commit()
    log = Path(f"{shared}-wal")
    content = log.read_bytes()
    assert content
    connection.close()
    log.write_bytes(content)
    log.chmod(0o444)
    shared.parent.chmod(0o555)
    assert "cannot be opened" in open_unprivileged(shared, "read")
    assert log.read_bytes() == content


def test_read_only_file_in_a_writable_folder(shared: Path) -> None:
    shared.parent.chmod(0o777)
    shared.chmod(0o444)
    assert "cannot be written" in open_unprivileged(shared, "write")


def test_unreadable_file(shared: Path) -> None:
    shared.parent.chmod(0o777)
    shared.chmod(0o000)
    for how in ("read", "write"):
        assert "cannot be opened" in open_unprivileged(shared, how)


def test_new_store_in_a_read_only_folder(public_folder: Path) -> None:
    public_folder.chmod(0o555)
    assert "cannot be opened" in open_unprivileged(public_folder / "store.db", "write")
    assert "cannot make the folder" in open_unprivileged(public_folder / "deeper/store.db", "write")


def test_read_only_by_the_url(url: str) -> None:
    fill(url, 3)
    file_url = url.replace("sqlite:///", "sqlite:///file:") + "?mode=ro&uri=true"
    with pytest.raises(UserError, match="cannot be written"):
        Store.open(file_url)
    with Store.open(file_url, read_only=True) as store:
        assert len(store.evaluations(problem())) == 3


def test_reader_cannot_write(url: str) -> None:
    fill(url, 1)
    with Store.open(url, read_only=True) as store, pytest.raises(UserError, match="cannot be written"):
        store.commit_facts("key", samples.facts())


# -- full disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=768k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(options, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def run_fill(*arguments: object, script: str = FILL) -> tuple[int, str]:
    process = samples.start(script, *arguments)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    done, said = output.splitlines()
    return int(done), said


def test_full_disk(small_disk: Path, tmp_path: Path) -> None:
    done, said = run_fill(f"sqlite:///{small_disk / 'store.db'}")
    assert done > 10
    assert "the disk is full" in said
    assert str(small_disk / "store.db") in said
    # Made room, as the message says: copied with its log to where there is some.
    for file in small_disk.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        assert len(store.evaluations(problem())) == done
        assert store.check() == []


def test_the_end_of_a_session_finds_room_on_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "store.db"
    done, said = run_fill(f"sqlite:///{path}", script=END)
    assert "the disk" in said
    assert all(file.name.startswith("store.db") for file in small_disk.iterdir())
    assert_ended(f"sqlite:///{path}?mode=ro", done)


def test_the_end_of_a_session_finds_room_in_the_largest_file_allowed(url: str) -> None:
    done, said = run_fill(url, 1_500_000, script=END)
    assert "the disk under" in said
    assert_ended(url, done)


def assert_ended(url: str, evaluations: int) -> None:
    with Store.open(url, read_only=True) as store:
        (session,) = store.sessions()
        assert session.state == "failed"
        assert store.check() == []
        assert len(store.evaluations(problem())) == evaluations > 10


def test_full_disk_at_the_first_opening(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 730_000)
    with pytest.raises(UserError, match="the disk"):
        Store.open(f"sqlite:///{small_disk / 'store.db'}")
    (small_disk / "ballast").unlink()
    with Store.open(f"sqlite:///{small_disk / 'store.db'}") as store:
        assert store.check() == []


def test_largest_file_allowed(url: str) -> None:
    done, said = run_fill(url, 1_500_000)
    assert done > 10
    assert "the disk under" in said
    with Store.open(url) as store:
        assert len(store.evaluations(problem())) == done
        assert store.check() == []


# -- locks


def test_lock_that_is_not_let_go(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "BUSY_TIMEOUT_S", 0.05)
    fill(url, 1)
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match="is locked by another process"):
        Store.open(url)
    with Store.open(url, read_only=True) as reader:
        assert len(reader.evaluations(problem())) == 1
    other.execute("ROLLBACK")
    Store.open(url).close()


def test_server_that_is_not_there() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UserError, match="does not answer"):
        Store.open("postgresql+psycopg://me:secret@127.0.0.1:1/m3gen?connect_timeout=2")


def test_fault_of_m3gen_keeps_its_traceback(store: Store) -> None:
    from sqlalchemy.exc import IntegrityError

    with pytest.raises(IntegrityError), store._write() as session:
        session.connection().exec_driver_sql("INSERT INTO launches VALUES (1, 0, 'none')")
