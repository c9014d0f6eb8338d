"""Several problems in one session share compiles, budget and findings."""

from __future__ import annotations

from pathlib import Path

from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.targets import Device
from m3gen.testing.fake_op import FakeOp
from m3gen.testing.fake_session import WideOp
from tests.search.fakes import DEVICE, Bench, Dies, problem, whole_space


def test_one_compile_serves_all_problems_of_a_group(bench: Bench):
    one, many = problem(16), problem(128)
    result = bench.session(one, many, budget="1000").run()
    assert len(bench.compiles) == 33
    assert all(set(problems) == {one, many} for problems, _ in bench.compiles)
    assert [row.config for row in result.rows] == [bench.op.best(one), bench.op.best(many)]


def test_groups_take_turns(bench: Bench):
    plain, other = problem(), problem(head_dim=64)
    bench.session(plain, other, budget="8").run()
    counts = [sum(p in problems for problems, _ in bench.compiles) for p in (plain, other)]
    assert counts == [8, 8]
    assert {problems for problems, _ in bench.compiles[:4]} == {(plain,), (other,)}


def test_a_failure_of_a_shared_compile_is_each_problem_s(bench: Bench):
    bad = whole_space(bench)[3]
    bench.faults[bad] = Dies()
    bench.session(problem(16), problem(128), budget="1000").run()
    for rows in (16, 128):
        failed = [r for r in bench.store.evaluations(problem(rows)) if not r.evaluation.ok]
        assert [(r.config, r.evaluation.status) for r in failed] == [(bad, Status.COMPILE_ABORT)]


def test_no_problem_gets_more_than_the_budget(bench: Bench):
    bench.session(problem(16), budget="15").run()
    bench.session(problem(16), problem(128), budget="20").run()
    assert [len(bench.store.evaluations(problem(rows))) for rows in (16, 128)] == [20, 20]


def test_problems_that_the_op_cannot_tell_apart_are_one(bench: Bench):
    from dataclasses import replace

    result = bench.session(problem(), replace(problem(), context=8192), budget="5").run()
    assert [row.problem for row in result.rows] == [problem()]


def test_keeps_no_more_than_two_candidates_per_job_in_flight(bench: Bench):
    bench.session(budget="1000").run()
    assert bench.pools[0].most_pending == 4


def test_a_search_starts_from_the_best_of_a_related_problem(bench: Bench):
    bench.session(problem(), budget="1000").run()
    before = len(bench.compiles)
    related = problem(head_dim=64)
    bench.session(related, budget="2", sampler="hybrid").run()
    tried = [config for _, config in bench.compiles[before:]]
    assert tried == [bench.op.default(related, DEVICE), bench.op.best(problem())]


def test_an_ordered_search_is_the_same_whoever_answers_first(tmp_path: Path):
    def compiles(first: int, *, ordered: bool) -> list[Config]:
        with Store.open(f"sqlite:///{tmp_path}/{first}-{ordered}.db") as store:
            bench = Bench(store, first=first, op=WideOp())
            bench.session(sampler="tpe", budget="40", seed=1, ordered=ordered).run()
            assert len(store.evaluations(problem())) == 40
            return [config for _, config in bench.compiles]

    told = [sorted(compiles(first, ordered=True), key=lambda config: config.sha) for first in (0, -1)]
    assert told[0] == told[1]
    heard = [sorted(compiles(first, ordered=False), key=lambda config: config.sha) for first in (0, -1)]
    assert heard[0] != heard[1]  # or this test could not fail


class ByLoad(FakeOp):
    """What the field does depends on the load."""

    def default(self, problem: Problem, device: Device) -> Config:
        return Config({"tile": 16 if problem.rows < 64 else 128, "warps": 1, "split": "none"})


def test_what_the_field_does_under_other_loads_spends_no_budget(bench: Bench):
    """Ten loads had ten of the field's configs, and a budget of 12 left two for all that was known to be better."""
    bench.op = ByLoad()
    few, many = problem(rows=1), problem(rows=256)
    bench.session(few, many, budget="2").run()
    fields = {bench.op.default(one, DEVICE) for one in (few, many)}
    for one in (few, many):
        known = {record.config for record in bench.store.evaluations(one)}
        assert fields < known
        assert len(known) >= 3
    compiles = len(bench.compiles)
    assert bench.session(few, many, budget="2").run().ended == "nothing to do"
    assert len(bench.compiles) == compiles
