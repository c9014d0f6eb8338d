"""`m3gen repredict` on a small store; what it does is `tests/search/test_repredict.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.cli import work
from m3gen.search.repredict import Repredicted
from m3gen.spec import Problem
from m3gen.store import Store
from tests.cli.conftest import Run
from tests.store import samples

PROBLEMS = (samples.problem(), samples.problem(op="index_topk"), samples.problem(arch="gfx950", compute_units=256))


@pytest.fixture
def url(home: Path) -> str:
    url = f"sqlite:///{home / 'm3gen.db'}"
    with Store.open(url) as store:
        session = store.begin({}, PROBLEMS)
        for problem in PROBLEMS:
            store.commit_evaluation(session, problem, samples.config(), samples.predicted(10.0))
    return url


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    found: list[Problem] = []

    def repredict(store: Store, problems: list[Problem], tick: object) -> Repredicted:
        found.extend(problems)
        return Repredicted(3, 2, 1)

    monkeypatch.setattr(work, "repredict", repredict)
    return found


def test_all_that_the_store_holds(run: Run, url: str, asked: list[Problem]) -> None:
    found = run("repredict", "--store", url)
    assert found.status == 0
    assert "3 predicted anew, 2 known to this version, 1 not" in found.out
    assert asked == sorted(PROBLEMS)


def test_of_one_architecture_and_op(run: Run, url: str, asked: list[Problem]) -> None:
    found = run("repredict", "--store", url, "--arch", "gfx942", "--op", "sparse_decode", "--json")
    fields = found.object
    assert (fields["new"], fields["known"], fields["lacking"]) == (3, 2, 1)
    assert asked == [PROBLEMS[0]]
