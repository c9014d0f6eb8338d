from __future__ import annotations

import pytest

from m3gen.evaluate.evaluation import Evaluation
from m3gen.space.config import Config
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.store.winners import judge_ranks
from tests.store import samples
from tests.store.samples import config, failed, measured, predicted, problem, verified


class Bench:
    """A store with a running session, in few words."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.session = store.begin({}, [])

    def evaluate(self, number: int, evaluation: Evaluation, on: Problem | None = None) -> None:
        assert self.store.commit_evaluation(self.session, on or problem(), config(number), evaluation)

    def verify(self, number: int, status: Status = Status.OK, **changes: str) -> None:
        assert self.store.commit_verification(problem(), config(number), verified(status, **changes))

    def winning(self) -> list[Config]:
        return [winner.config for winner in self.store.winners()]


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def test_nothing_wins_in_an_empty_store(store: Store) -> None:
    assert store.winners() == []


def test_fastest_verified_candidate_wins(bench: Bench) -> None:
    bench.store.commit_facts("key", samples.facts())
    evaluation = predicted(9.0, facts=("key", "key"))
    bench.evaluate(1, predicted(10.0))
    bench.evaluate(2, evaluation)
    bench.evaluate(3, predicted(8.0))
    bench.evaluate(4, predicted(7.0))
    bench.evaluate(5, failed(Status.COMPILE))
    for number, status in [(1, Status.OK), (2, Status.OK), (3, Status.CORRECTNESS), (5, Status.OK)]:
        bench.verify(number, status)
    (winner,) = bench.store.winners()
    assert (winner.problem, winner.config) == (problem(), config(2))
    assert winner.evaluation == evaluation
    assert winner.verification == verified()
    assert winner.compiler == "triton-3.9.0"


def test_measured_before_predicted(bench: Bench) -> None:
    bench.evaluate(2, measured(9.0))
    bench.evaluate(1, predicted(5.0, judge="predict-amd-2"))
    bench.verify(1)
    bench.verify(2)
    assert bench.winning() == [config(2)]


def test_newest_judge_first(bench: Bench) -> None:
    bench.evaluate(1, predicted(9.0, judge="predict-amd-10"))
    bench.evaluate(2, predicted(5.0, judge="predict-amd-9"))
    bench.verify(1)
    bench.verify(2)
    assert bench.winning() == [config(1)]


def test_age_of_judges_is_their_number_then_their_first_row() -> None:
    ranks = judge_ranks({"predict-9": 1, "predict-10": 2, "roofline-10": 7, "trial": 9})
    assert sorted(ranks, key=ranks.__getitem__) == ["roofline-10", "predict-10", "predict-9", "trial"]


def test_measured_that_failed_does_not_win(bench: Bench) -> None:
    bench.evaluate(1, failed(Status.IMPLAUSIBLE, stage=measured(1.0).stage))
    bench.evaluate(1, predicted(5.0))
    bench.verify(1)
    (winner,) = bench.store.winners()
    assert winner.evaluation == predicted(5.0)


def test_one_verdict_for_every_load_one_winner_for_each(bench: Bench) -> None:
    bench.evaluate(1, predicted(5.0))
    bench.evaluate(2, predicted(6.0))
    bench.evaluate(2, predicted(50.0), on=problem(rows=64))
    bench.evaluate(1, predicted(60.0), on=problem(rows=64))
    bench.evaluate(1, predicted(1.0), on=problem(kv_heads=2))  # another signature: not verified
    bench.verify(1)
    bench.verify(2)
    winners = bench.store.winners()
    assert [(winner.problem.rows, winner.config) for winner in winners] == [(1, config(1)), (64, config(2))]


def test_strongest_witness_decides(bench: Bench) -> None:
    bench.evaluate(1, predicted(5.0))
    bench.evaluate(2, predicted(6.0))
    bench.verify(1, Status.CORRECTNESS, on="gpu")
    bench.verify(1, on="interpreter")
    bench.verify(2, Status.TIMEOUT, on="interpreter")
    bench.verify(2, on="machine-code")
    assert bench.winning() == [config(2)]


def test_newest_source_decides(bench: Bench) -> None:
    bench.evaluate(1, predicted(5.0))
    bench.verify(1, source_sha="old")
    bench.verify(1, Status.CORRECTNESS, source_sha="new")
    assert bench.winning() == []


def test_evaluation_that_names_its_source_is_held_to_it(bench: Bench) -> None:
    bench.evaluate(1, predicted(5.0, environment={"source_sha": "new"}))
    bench.verify(1, source_sha="old")
    assert bench.winning() == []
    bench.verify(1, source_sha="new")
    (winner,) = bench.store.winners()
    assert winner.verification.source_sha == "new"


def test_ties_do_not_depend_on_the_order_of_work(bench: Bench) -> None:
    by_sha = sorted(range(4), key=lambda number: config(number).sha)
    for number in reversed(by_sha):
        bench.evaluate(number, predicted(5.0))
        bench.verify(number)
    assert bench.winning() == [config(by_sha[0])]


def test_a_tie_goes_to_the_fewest_registers(bench: Bench) -> None:
    for number in (0, 5, 9):  # 100 registers and more
        bench.store.commit_facts(f"facts-{number}", samples.facts(number))
    bench.evaluate(1, predicted(5.0, facts=("facts-9",)))
    bench.evaluate(2, predicted(5.01, facts=("facts-0", "facts-5")))
    bench.evaluate(3, predicted(6.0, facts=("facts-0",)))
    for number in (1, 2, 3):
        bench.verify(number)
    (winner,) = bench.store.winners()
    assert winner.config == config(2)
    assert winner.evaluation.facts == ("facts-0", "facts-5")


def test_a_tie_with_another_authority_is_none(bench: Bench) -> None:
    bench.store.commit_facts("small", samples.facts())
    bench.store.commit_facts("large", samples.facts(100))
    bench.evaluate(1, predicted(5.0, judge="predict-amd-2", facts=("large",)))
    bench.evaluate(2, predicted(5.0, judge="predict-amd-1", facts=("small",)))
    bench.verify(1)
    bench.verify(2)
    assert bench.winning() == [config(1)]


def test_by_arch_and_op(bench: Bench) -> None:
    other = problem(arch="gfx950", compute_units=256)
    for one in (problem(), other):
        bench.evaluate(1, predicted(5.0), on=one)
        bench.store.commit_verification(one, config(1), verified())
    assert [winner.problem for winner in bench.store.winners()] == [problem(), other]
    assert [winner.problem for winner in bench.store.winners(arch="gfx950")] == [other]
    assert bench.store.winners(op="merge") == []
    assert len(bench.store.winners(op="sparse_decode", arch="gfx942")) == 1
