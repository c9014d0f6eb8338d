"""A user with folders of their own, and one way to run the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from m3gen.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """The one JSON object on standard output, which holds nothing else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def line(self) -> str:
        """The one line on standard error of a refused command, which wrote nothing else."""
        assert (self.status, self.out) == (2, ""), self
        [line] = self.err.splitlines()
        assert line.startswith("m3gen: ")
        return line


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store, cache, tables and modules go below one new folder; terminals are 120 wide."""
    monkeypatch.setenv("M3GEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("M3GEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("M3GEN_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("m3gen.paths.checkout", lambda: None)
    return tmp_path / "home"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("tune", "--arch", "gfx942")` runs the command in this process."""

    def command(*arguments: object) -> Ran:
        monkeypatch.setattr("sys.argv", ["m3gen", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return command
