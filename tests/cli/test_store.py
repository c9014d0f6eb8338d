"""`m3gen store` from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.store import Store
from tests.cli.conftest import Run
from tests.cli.test_tables import store_with
from tests.store.test_aside import damage


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store_with(url)
    return url


def test_info(run: Run, url: str) -> None:
    ran = run("store", "info", "--store", url)
    assert "gfx942 sparse_decode: 2 evaluations" in ran.out
    assert "judge predict-amd-1: 2 evaluations" in ran.out
    found = run("store", "info", "--store", url, "--json").object
    assert found["rows"]["evaluations"] == 2
    assert found["evaluations"] == [{"arch": "gfx942", "op": "sparse_decode", "evaluations": 2}]


def test_check(run: Run, url: str, tmp_path: Path) -> None:
    assert run("store", "check", "--store", url).out == f"{tmp_path / 'a.db'} is sound\n"


def test_check_of_a_damaged_file(run: Run, tmp_path: Path) -> None:
    damage(tmp_path / "b.db")
    assert "is damaged" in run("store", "check", "--store", f"sqlite:///{tmp_path / 'b.db'}").line


def test_merge(run: Run, url: str, tmp_path: Path) -> None:
    into = f"sqlite:///{tmp_path / 'into.db'}"
    ran = run("store", "merge", url, "--store", into)
    assert "evaluations 2" in ran.out
    assert "new nothing" in run("store", "merge", url, "--store", into).out
    with Store.open(into) as store:
        assert len(store.winners()) == 2


def test_merge_into_itself(run: Run, url: str) -> None:
    assert "cannot be merged into itself" in run("store", "merge", url, "--store", url).line


def test_prune_and_vacuum(run: Run, url: str) -> None:
    judge = ("--judge", "predict-amd-1")
    assert (
        "would take out evaluations 2, facts 1" in run("store", "prune", *judge, "--dry-run", "--store", url).out
    )
    assert "took out evaluations 2, facts 1" in run("store", "prune", *judge, "--store", url).out
    assert " bytes -> " in run("store", "vacuum", "--store", url).out
