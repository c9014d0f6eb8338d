"""Bad input through the real command: one line that names the thing and the way out, 2, and nothing touched."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from m3gen.store import Store
from tests.cli.conftest import Ran
from tests.processes import processes_with
from tests.store.samples import ROOT, config, predicted, problem

# Everything is imported before, by a refused command too: Python itself may lie where only root can read.
_AS_NOBODY = """
import contextlib, io, os, sys
from pathlib import Path
from m3gen.cli import live, main, output, problems, stored, work
from m3gen.search import session, tpe
from m3gen.search.executor import LocalExecutor
from m3gen.search.rooms import real_rooms
from m3gen.store import Store

Store.open("sqlite://").close()
real_rooms(LocalExecutor(1), "gfx942", deadline_s=1, verify_deadline_s=1, cache_dir=Path("/nowhere"))
arguments = sys.argv
sys.argv = ["m3gen", "tune", "--arch", "no such"]
with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
    main.main()
sys.argv = arguments
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
main.main()
"""

TUNE = ("tune", "--arch", "gfx942", "--no-export")


def m3gen(*arguments: object, **options: Any) -> Ran:
    return _run("-m", "m3gen.cli.main", *map(str, arguments), **options)


def m3gen_as_nobody(*arguments: object) -> Ran:
    """For a user who may only do what the modes of files say."""
    return _run("-c", _AS_NOBODY, *map(str, arguments))


def _run(
    *arguments: str,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    closed: int | None = None,
    largest_file: int | None = None,
) -> Ran:
    """`largest_file`: bytes of any file that the command may write, as on a disk that is nearly full. `closed`: a
    descriptor that it does not have."""

    def limit() -> None:
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        if closed is not None:
            os.close(closed)

    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        text=True,
        stdout=stdout,
        stderr=stderr,
        timeout=300,
        preexec_fn=limit,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout or "", ran.stderr or "")


def fill(path: Path) -> str:
    """A store of one evaluation at `path`; its URL."""
    url = f"sqlite:///{path}"
    with Store.open(url) as store:
        store.commit_evaluation(store.begin({}, [problem()]), problem(), config(), predicted(5.0))
    return url


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement)


@pytest.mark.parametrize(
    ("arguments", "names", "remedy"),
    [
        (("--arch", "gfx94"), "'gfx94'", "nearest gfx942"),
        (("--arch", "gfx942", "--op", "sparse_decod"), "'sparse_decod'", "did you mean sparse_decode?"),
        (("--arch", "gfx942", "--rows", "0"), "--rows '0'", "expected positive integers"),
        (("--arch", "gfx942", "--rows", "1000"), "--rows 1000", "expected 512 or less"),
        (("--arch", "gfx942", "--tp", "3"), "--tp 3", "1, 2, 4, 8, 16"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_asked(home: Path, arguments: tuple[str, ...], names: str, remedy: str) -> None:
    line = m3gen("tune", *arguments).line
    assert names in line
    assert remedy in line
    assert not home.exists()


@pytest.mark.parametrize("command", [TUNE, ("show",)], ids=lambda c: c[0])
class TestDatabase:
    """Neither writers nor readers touch a database that they cannot use."""

    def test_of_a_newer_version(self, tmp_path: Path, command: tuple[str, ...]) -> None:
        path = tmp_path / "store.db"
        url = fill(path)
        execute(path, "UPDATE alembic_version SET version_num = '9999'")
        self.refused(path, command, url, f"{path} has the schema '9999'", "upgrade m3gen or name another store")

    def test_of_something_else(self, tmp_path: Path, command: tuple[str, ...]) -> None:
        path = tmp_path / "cookies.db"
        execute(path, "CREATE TABLE cookies (name TEXT)")
        self.refused(
            path, command, f"sqlite:///{path}", f"{path} is the database of something else", "name another"
        )

    def test_corrupt(self, tmp_path: Path, command: tuple[str, ...]) -> None:
        path = tmp_path / "store.db"
        url = fill(path)
        content = bytearray(path.read_bytes())
        content[8192:] = b"\xa5" * (len(content) - 8192)
        path.write_bytes(content)
        if command == TUNE:  # puts it away and goes on
            ran = m3gen(*command, "--kv", "bf16", "--rows", "1", "--budget", "1", "--store", url)
            assert ran.status in (0, 1)
            assert f"{path} is damaged" in ran.err
            assert [one.read_bytes() for one in tmp_path.glob("store.db.damaged*")] == [bytes(content)]
        else:
            self.refused(path, command, url, f"{path} is damaged", f"mv {path} {path}.damaged")

    def refused(self, path: Path, command: tuple[str, ...], url: str, *parts: str) -> None:
        content = path.read_bytes()
        line = m3gen(*command, "--store", url).line
        assert all(part in line for part in parts), line
        assert path.read_bytes() == content


class TestPermissions:
    @pytest.fixture(autouse=True)
    def home_of_nobody(self, public_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        home = public_folder / "home"
        home.mkdir()
        home.chmod(0o777)
        monkeypatch.setenv("M3GEN_HOME", str(home))
        monkeypatch.setenv("M3GEN_CACHE", str(home / "cache"))
        return home

    def test_read_only_database(self, public_folder: Path) -> None:
        path = public_folder / "store.db"
        url = fill(path)
        path.chmod(0o444)
        public_folder.chmod(0o555)
        content = path.read_bytes()
        line = m3gen_as_nobody(*TUNE, "--store", url).line
        assert str(path) in line
        assert "name another store" in line
        assert path.read_bytes() == content
        assert m3gen_as_nobody("show", "--store", url).status == 0

    def test_unwritable_home(self, home_of_nobody: Path) -> None:
        home_of_nobody.chmod(0o555)
        line = m3gen_as_nobody(*TUNE).line
        assert str(home_of_nobody) in line
        assert "make it writable" in line
        assert list(home_of_nobody.iterdir()) == []

    def test_unwritable_cache(self, public_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("M3GEN_CACHE", str(public_folder / "cache"))
        (public_folder / "cache").mkdir()
        line = m3gen_as_nobody(*TUNE).line
        assert f"the facts cache at {public_folder}/cache/facts" in line
        assert "set M3GEN_CACHE" in line
        assert not (public_folder / "home/m3gen.db").exists()


class TestFullDisk:
    def test_at_the_first_opening(self, home: Path) -> None:
        line = m3gen(*TUNE, largest_file=8192).line
        assert f"the disk under {home}/m3gen.db" in line
        assert "run again" in line
        with Store.open(f"sqlite:///{home}/m3gen.db") as store:
            assert store.check() == []

    def test_in_the_middle_of_a_session(self, home: Path, tmp_path: Path) -> None:
        """Room for some evaluations and for the compiler's own files, not for all of them."""
        url = f"sqlite:///{home}/m3gen.db"
        Store.open(url).close()
        room = (home / "m3gen.db").stat().st_size + 200_000
        search = ("--kv", "bf16", "--rows", "1", "--budget", "50", "--jobs", "1", "--sampler", "exhaustive")
        ran = m3gen(*TUNE, *search, largest_file=room)
        assert (ran.status, ran.out) == (2, "")
        assert "Traceback" not in ran.err
        *progress, line = ran.err.splitlines()
        assert all(one.startswith("searching") for one in progress)
        assert line.startswith(f"m3gen: the disk under {home}/m3gen.db fails")
        assert "all that was committed before is kept" in line
        assert processes_with(f"M3GEN_CACHE={tmp_path}/cache") == set()
        with Store.open(url) as store:
            assert store.check() == []
            assert store.failures() == []
            (session,) = store.sessions()
            assert session.state == "failed"
        with closing(sqlite3.connect(home / "m3gen.db")) as connection:
            (kept,) = connection.execute("SELECT count(*) FROM evaluations").fetchone()
        assert 0 < kept < 50

    def test_of_the_output(self) -> None:
        for arguments in (("targets",), ("targets", "--json"), ("--help",), ("tune", "--help"), ("--version",)):
            ran = m3gen(*arguments, stdout=os.open("/dev/full", os.O_WRONLY))
            assert "free some space" in ran.line

    def test_of_the_errors(self) -> None:
        with open("/dev/full", "w") as full:
            ran = m3gen("targets", "no such", stderr=full.fileno())
        assert (ran.status, ran.out) == (2, "")


@pytest.mark.parametrize("arguments", [("--help",), ("targets",)], ids=lambda arguments: arguments[0])
class TestClosedStreams:
    def test_output(self, arguments: tuple[str, ...]) -> None:
        ran = m3gen(*arguments, closed=1)
        assert ran.line == "m3gen: standard output is closed: leave it open, or send it to a file or to /dev/null"

    def test_errors(self, arguments: tuple[str, ...]) -> None:
        ran = m3gen(*arguments, closed=2)
        assert (ran.status, ran.out) == (0, m3gen(*arguments).out)
