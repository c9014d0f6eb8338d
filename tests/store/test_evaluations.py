"""Many evaluations in one transaction."""

from __future__ import annotations

import pytest

from m3gen.store import Store
from tests.store import samples
from tests.store.samples import config, predicted, problem


@pytest.fixture
def session(store: Store) -> int:
    for number in range(3):
        store.commit_facts(f"key-{number}", samples.facts(number))
    return store.begin({"budget": "200"}, [problem()])


def test_many_come_back_as_one_by_one(store: Store, session: int) -> None:
    found = [
        (
            problem(rows=1 << number % 3),
            config(number),
            predicted(5.0 + number, facts=(f"key-{number % 3}", "key-0")),
        )
        for number in range(50)
    ]
    assert store.commit_evaluations(session, found) == 50
    for rows in (1, 2, 4):
        records = store.evaluations(problem(rows=rows))
        expected = {c: e for p, c, e in found if p.rows == rows}
        assert {record.config: record.evaluation for record in records} == expected
    assert store.check() == []


def test_only_new_ones_count(store: Store, session: int) -> None:
    found = [(problem(), config(number), predicted(5.0 + number)) for number in range(4)]
    assert store.commit_evaluations(session, found[:2]) == 2
    assert store.commit_evaluations(session, found) == 2
    assert store.commit_evaluations(session, []) == 0
    twice = [(problem(), config(9), predicted(7.0)), (problem(), config(9), predicted(8.0))]
    assert store.commit_evaluations(session, twice) == 1
    assert store.evaluations(problem(), config=config(9))[0].evaluation.value_us == 7.0


def test_one_that_is_refused_refuses_all(store: Store, session: int) -> None:
    good, bad = predicted(5.0), predicted(6.0, facts=("key-of-nobody",))
    with pytest.raises(ValueError, match="key-of-nobody"):
        store.commit_evaluations(session, [(problem(), config(0), good), (problem(), config(1), bad)])
    assert store.evaluations(problem()) == []


def test_what_others_found_out_since(store: Store, session: int) -> None:
    other = store.begin({"budget": "100"}, [problem()])
    store.commit_evaluation(other, problem(), config(0), predicted(5.0))
    before = store.newest_evaluation()
    store.commit_evaluation(session, problem(), config(1), predicted(6.0))
    store.commit_evaluation(other, problem(), config(2), predicted(7.0))
    store.commit_evaluation(other, problem(rows=4), config(2), predicted(8.0))
    found, last = store.evaluations_of_others(session, [problem()], before)
    assert [(of, record.config) for of, record in found] == [(problem(), config(2))]
    assert store.evaluations_of_others(session, [problem()], last) == ([], last)
    found, _ = store.evaluations_of_others(session, [problem(), problem(rows=4)], 0)
    assert [record.config for _, record in found] == [config(0), config(2), config(2)]


def test_what_others_store_of_other_problems_is_not_looked_at_twice(store: Store, session: int) -> None:
    """Two sessions on one store once read all that the other one had written, twice a second."""
    other = store.begin({"budget": "100"}, [problem(rows=4)])
    store.commit_evaluation(other, problem(rows=4), config(2), predicted(8.0))
    store.commit_evaluation(session, problem(), config(1), predicted(6.0))
    assert store.evaluations_of_others(session, [problem()], 0) == ([], store.newest_evaluation())
