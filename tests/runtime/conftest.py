"""A folder as `m3gen tune` leaves it: tables and the modules made from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.codegen.generate import generate
from m3gen.tables.export import export
from m3gen.tables.findings import Finding
from m3gen.tables.load import load
from tests.tables.winners import config, finding, fp8, problem


def make(home: Path, *found: Finding, modules: bool = True) -> Path:
    """`home` with `tuning_db` and `generated`."""
    for path in export(found, home / "tuning_db"):
        if modules:
            generate(load(path), home / "generated")
    return home


FOUND = (
    finding(problem(rows=1), 1.0, chosen=config(problem(), num_warps=1)),
    finding(problem(rows=16), 16.0),
    finding(problem(rows=64), 64.0),
    finding(fp8(rows=16), 8.0, chosen=config(fp8(), num_warps=2)),
)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("home"), *FOUND)


@pytest.fixture(autouse=True)
def nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tables of whoever runs the tests."""
    monkeypatch.setenv("M3GEN_HOME", str(tmp_path / "nobodys"))
    for name in ("M3GEN_TABLES", "M3GEN_GENERATED", "M3GEN_SITE", "XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.delenv(name, raising=False)
