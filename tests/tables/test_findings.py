from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from m3gen.codegen.generate import device_of
from m3gen.spec import Problem
from m3gen.store import Store
from m3gen.tables.findings import findings, is_current
from tests.store.samples import facts
from tests.tables.winners import OP, config, finding, problem, stale, winner


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


def commit(store: Store, of: Problem, us: float, **changes: object) -> None:
    made = winner(of, us, chosen=config(of, **changes))
    keys = []
    for number, registers in enumerate((96, 128)):  # attend and merge
        keys.append(f"{made.config.sha}-{number}")
        store.commit_facts(keys[-1], replace(facts(number), registers=registers))
    source_sha = made.verification.source_sha
    evaluation = replace(made.evaluation, facts=tuple(keys), environment={"source_sha": source_sha})
    session = store.begin({}, [of])
    store.commit_evaluation(session, of, made.config, evaluation)
    store.end(session, "ended")
    store.commit_verification(of, made.config, made.verification)


def test_a_finding_holds_what_the_store_knows(store: Store) -> None:
    default = OP.field(problem(), device_of(problem()))
    commit(store, problem(), 20.0)
    commit(store, problem(), 8.0, num_warps=1)
    commit(store, problem(), 9.0, num_warps=2)
    commit(store, problem(rows=16), 7.0)
    first, second = findings(store, store.winners())
    assert (first.winner.evaluation.value_us, first.baseline_us, first.registers) == (8.0, 20.0, 128)
    # The default wins at 16 rows, so its time here counts; that of a config that wins nowhere does not.
    assert first.others == {default: 20.0, config(problem(), num_warps=1): 8.0}
    assert (second.baseline_us, second.others) == (7.0, {default: 7.0})


def test_no_baseline_where_the_default_does_not_run(store: Store) -> None:
    commit(store, problem(), 8.0, num_warps=1)
    assert [found.baseline_us for found in findings(store, store.winners())] == [None]


def test_a_winner_is_current_while_its_text_is_what_was_checked() -> None:
    assert is_current(winner(problem()))
    assert not is_current(stale(finding(problem())).winner)
