"""`m3gen portfolio` on a small store."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.spec import Problem
from m3gen.store import Store
from tests.cli.conftest import Run
from tests.store import samples

LOADS = {rows: samples.problem(context=2048, rows=rows) for rows in (1, 16)}


@pytest.fixture
def url(home: Path) -> str:
    """Two loads, each with a best config of its own that is 1.5 times off on the other."""
    url = f"sqlite:///{home / 'm3gen.db'}"
    with Store.open(url) as store:
        session = store.begin({}, list(LOADS.values()))

        def commit(problem: Problem, number: int, us: float) -> None:
            store.commit_evaluation(session, problem, samples.config(number), samples.predicted(us))

        for problem, first, second in ((LOADS[1], 8.0, 12.0), (LOADS[16], 15.0, 10.0)):
            commit(problem, 1, first)
            commit(problem, 2, second)
        store.end(session, "budget")
    return url


def test_members_and_what_they_serve(run: Run, url: str) -> None:
    ran = run("portfolio", "--arch", "gfx942")
    assert ran.status == 0
    assert "2 configurations for 2 problems: worst regret 1.000, geometric mean 1.000" in ran.out
    found = run("portfolio", "--arch", "gfx942", "--most", "1", "--json").object
    assert (found["command"], found["op"], len(found["members"])) == ("portfolio", "sparse_decode", 1)
    assert found["worst_regret"] == 1.5


def test_an_arch_of_which_nothing_is_known(run: Run, url: str) -> None:
    ran = run("portfolio", "--arch", "gfx950")
    assert (ran.status, "no time is known" in ran.out) == (1, True)


def test_bad_input(run: Run, url: str) -> None:
    assert "'gfx9'" in run("portfolio", "--arch", "gfx9").line
    assert "'sparse'" in run("portfolio", "--arch", "gfx942", "--op", "sparse").line
