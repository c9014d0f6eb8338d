"""`m3gen show` on a small store."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen import ops
from m3gen.cli import stored
from m3gen.evaluate.evaluation import Stage
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.targets import device
from tests.cli.conftest import Run
from tests.store import samples

MI300X = device("MI300X")
PROBLEM = samples.problem(context=2048)
FIELD = ops.field_config(ops.get("sparse_decode"), PROBLEM, MI300X)
WINNER = Config({**FIELD, "num_warps": 2})
SOURCE = {"source_sha": "source-1"}


@pytest.fixture
def url(home: Path) -> str:
    """A winner beside its default, one refused candidate, two that crashed, one that is wrong."""
    url = f"sqlite:///{home / 'm3gen.db'}"
    with Store.open(url) as store:
        session = store.begin({"sampler": "tpe", "budget": "200"}, [PROBLEM])
        keys = [f"facts-{number}" for number in range(2)]
        for number, key in enumerate(keys):
            store.commit_facts(key, samples.facts(number))

        def commit(config: Config, evaluation: object, problem: Problem = PROBLEM) -> None:
            store.commit_evaluation(session, problem, config, evaluation)  # type: ignore[arg-type]

        commit(FIELD, samples.predicted(12.0, facts=tuple(keys[:1]), environment=SOURCE))
        commit(WINNER, samples.predicted(8.0, facts=tuple(keys), environment=SOURCE))
        store.commit_verification(PROBLEM, WINNER, samples.verified())
        commit(samples.config(1), samples.failed(Status.CONSTRAINT, stage=Stage.STATIC, code="lds"))
        for number in (2, 3):
            commit(samples.config(number), samples.failed(Status.COMPILE_ABORT, reason=f"exit {number}"))
        store.commit_verification(PROBLEM, samples.config(4), samples.verified(Status.CORRECTNESS, reason="off"))
        # The verdict counts once, whatever the number of loads it holds for.
        commit(WINNER, samples.predicted(9.0, environment=SOURCE), samples.problem(context=2048, rows=16))
        store.end(session, "budget")
        store.begin({"sampler": "random"}, [samples.problem(arch="gfx950", compute_units=256)])
    return url


def test_winners_sessions_and_failures(run: Run, url: str, home: Path) -> None:
    ran = run("show")
    assert ran.status == 0
    numbers = [line.split() for line in ran.out.splitlines() if "memory" in line]
    assert numbers[0] == ["4", "bf16", "1", "12.0", "8.00", "1.50x", "memory", "101", "2", "2"]
    assert numbers[1][2:6] == ["16", "-", "9.00", "-"]
    assert "compiler crashed" in ran.out
    assert "running or killed" in ran.out
    assert f"store {home / 'm3gen.db'}" in ran.out


def test_as_an_object(run: Run, url: str) -> None:
    found = run("show", "--json").object
    assert [winner["problem"]["rows"] for winner in found["winners"]] == [1, 16]
    assert found["winners"][0]["config"] == WINNER.to_dict()
    assert found["winners"][0]["field_config"] == FIELD.to_dict()
    assert [(session["state"], session["problems"]) for session in found["sessions"]] == [
        ("budget", 1),
        ("running", 1),
    ]
    assert [(one["stage"], one["status"], one["code"], one["count"]) for one in found["failures"]] == [
        ("predicted", "compile_abort", "", 2),
        ("gate", "correctness", "", 1),
        ("static", "constraint", "lds", 1),
    ]


def test_of_one_architecture(run: Run, url: str) -> None:
    found = run("show", "--arch", "gfx950", "--op", "sparse_decode", "--json").object
    assert (found["winners"], found["failures"], len(found["sessions"])) == ([], [], 1)


def test_without_a_store_nothing_is_made(run: Run, home: Path) -> None:
    assert "tune something first" in run("show").line
    assert not home.exists()


def test_unknown_names(run: Run, url: str) -> None:
    assert "'gfx9'" in run("show", "--arch", "gfx9").line
    assert "'sparse'" in run("show", "--op", "sparse").line


def test_the_winner_of_a_row_is_the_evaluation_it_stands_on(url: str) -> None:
    with Store.open(url) as store:
        winner = next(winner for winner in store.winners() if winner.problem == PROBLEM)
        assert stored.winner_of(store, stored.winner_row(store, winner)) == winner
