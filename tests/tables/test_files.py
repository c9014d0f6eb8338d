"""Readers while a writer replaces: always a whole table, the old or the new one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.tables.export import export
from m3gen.tables.files import replace_text, writing
from tests.tables.winners import finding, problem

READ = """
import sys, time
from pathlib import Path
from m3gen.tables.load import load
path, until = Path(sys.argv[1]), Path(sys.argv[2])
seen = set()
while not until.exists():
    seen.add(load(path).points[0].us)
print(sorted(seen))
"""


def test_eight_readers_while_a_writer_replaces(tmp_path: Path) -> None:
    root, until = tmp_path / "tuning_db", tmp_path / "until"
    times = {float(n) for n in range(1, 13)}
    (path,) = export([finding(problem(), 1.0)], root)
    command = [sys.executable, "-c", READ, str(path), str(until)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    readers = [subprocess.Popen(command, **pipes) for _ in range(8)]  # type: ignore[call-overload]
    for us in sorted(times):
        export([finding(problem(), us)], root)
    until.touch()
    for reader in readers:
        out, error = reader.communicate(timeout=60)
        assert reader.returncode == 0, error
        assert set(eval(out)) <= times


def test_replacing_keeps_the_old_file_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.json"
    replace_text(path, "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        replace_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["table.json"]


def test_replacing_a_read_only_file_needs_only_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    replace_text(path, "old")
    path.chmod(0o444)
    assert replace_text(path, "new")
    assert not replace_text(path, "new")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    hold = "import sys, time; from pathlib import Path; from m3gen.tables.files import writing\n"
    hold += "with writing(Path(sys.argv[1])): print('held', flush=True); sys.stdin.readline(); print('let go')"
    other = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    waiter = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        waiter.wait(timeout=1.0)
    other.communicate("\n", timeout=30)
    out, _ = waiter.communicate(timeout=30)
    assert out == "held\nlet go\n"


def test_the_lock_leaves_nothing_behind(tmp_path: Path) -> None:
    with writing(tmp_path / "new"):
        pass
    assert list((tmp_path / "new").iterdir()) == []
