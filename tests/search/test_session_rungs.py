"""A candidate that cannot win any more is stopped on the rung that says so, which teaches and never wins."""

from __future__ import annotations

from collections import Counter

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.rungs import PRIOR_MARGIN
from m3gen.search.study import Study
from m3gen.space import Config
from m3gen.spec import Status
from m3gen.store import Store
from tests.search.fakes import DEVICE, Bench, problem, whole_space


def at(bench: Bench, stage: Stage) -> dict[Config, Evaluation]:
    records = bench.store.evaluations(problem(), stage=stage)
    return {record.config: record.evaluation for record in records}


def test_what_the_prior_rules_out_is_never_compiled(bench: Bench):
    bench.prior = lambda us: us / PRIOR_MARGIN if us > 3 else 0.0
    result = bench.session(budget="1000", sampler="exhaustive").run()
    compiled = {config for _, config in bench.compiles}
    stopped = at(bench, Stage.PRIOR)
    assert stopped
    assert compiled | stopped.keys() == set(whole_space(bench))
    assert not compiled & stopped.keys()
    assert all(bench.op.cost_us(problem(), config) > 3 for config in stopped)
    assert result.rows[0].config == bench.op.best(problem())
    assert result.progress.stopped == {Stage.PRIOR: len(stopped)}
    assert result.progress.predicted == len(compiled)


def test_a_baseline_climbs_whatever_its_prior(bench: Bench):
    few, many = problem(16), problem(128, head_dim=64)
    bench.session(few, budget="1").run()
    bench.prior = lambda us: 1e6
    result = bench.session(few, many, budget="1000").run()
    assert bench.compiles[1] == ((many,), bench.op.default(many, DEVICE))
    assert {problems for problems, _ in bench.compiles[1:]} == {(many,)}
    assert all(row.baseline_us is not None for row in result.rows)


def test_what_ends_before_compiling_costs_no_budget(bench: Bench):
    bench.prior = lambda us: 1e6 if us > 3 else 0.0
    bench.session(budget="8").run()
    assert len(bench.compiles) == 8
    assert at(bench, Stage.PRIOR)


def test_what_the_compiled_code_rules_out_is_not_run(bench: Bench):
    bench.analytic = lambda us: us
    result = bench.session(budget="1000", sampler="exhaustive").run()
    stopped = at(bench, Stage.ANALYTIC)
    assert stopped
    assert len(bench.compiles) == len(whole_space(bench))
    assert all(one.facts == () and one.value_us and one.reason for one in stopped.values())
    assert result.rows[0].config == bench.op.best(problem())
    assert result.progress.stopped == {Stage.ANALYTIC: len(stopped)}


def test_a_stopped_candidate_never_wins(bench: Bench):
    """Its time is of another kind: here it looks faster than the winner."""
    bench.session(budget="1").run()
    bench.analytic = lambda us: 1e6
    result = bench.session(budget="1000").run()
    assert len(at(bench, Stage.PREDICTED)) == 1
    assert min(one.value_us or 0 for one in at(bench, Stage.ANALYTIC).values()) < 3.0
    assert result.rows[0].config == bench.op.default(problem(), DEVICE)
    assert bench.store.winners()[0].config == result.rows[0].config
    assert result.progress.best[problem()].stage is Stage.PREDICTED


def test_a_second_run_stops_nothing_anew(bench: Bench):
    bench.prior = lambda us: us / PRIOR_MARGIN
    bench.analytic = lambda us: us
    first = bench.session(budget="1000").run()
    compiles = len(bench.compiles)
    second = bench.session(budget="1000").run()
    assert (second.ended, len(bench.compiles)) == ("nothing to do", compiles)
    assert second.rows == first.rows
    assert second.progress.stopped == first.progress.stopped


def test_a_candidate_runs_while_it_can_win_one_of_its_problems(bench: Bench):
    """At 16 rows a tile of 128 is three steps off; at 128 rows it is the best."""
    few, many = problem(16), problem(128)
    bench.analytic = lambda us: us
    result = bench.session(few, many, budget="1000").run()
    assert [row.config for row in result.rows] == [bench.op.best(few), bench.op.best(many)]


def test_a_candidate_that_its_asker_drops_is_still_open_to_the_others(bench: Bench):
    few, many = problem(16), problem(128)
    bench.prior = lambda us: us / PRIOR_MARGIN
    result = bench.session(few, many, budget="1000").run()
    assert result.ended == "exhausted"
    for one in (few, many):
        assert {record.config for record in bench.store.evaluations(one)} == set(whole_space(bench))
    assert [row.config for row in result.rows] == [bench.op.best(few), bench.op.best(many)]


def test_a_stopped_candidate_stays_open_to_who_did_not_ask_and_might_win_with_it(bench: Bench):
    """The worker found it hopeless at margins that this problem would not be held to, had it asked."""
    few, many = problem(16), problem(128)
    bench.analytic = lambda us: 1e6
    bench.session(few, many, budget="1").run()
    result = bench.session(few, many, budget="1000").run()
    assert result.ended == "exhausted"
    compiled = [problems for problems, _ in bench.compiles]
    assert max(Counter(config for _, config in bench.compiles).values()) == 2  # once for each of the two
    assert (few,) in compiled or (many,) in compiled
    for one in (few, many):
        assert {record.config for record in bench.store.evaluations(one)} == set(whole_space(bench))


def test_a_higher_rung_stands_whatever_comes_after_it(bench: Bench):
    def evaluation(stage: Stage, us: float) -> Evaluation:
        return Evaluation(stage=stage, status=Status.OK, judge="judge", value_us=us)

    config = bench.op.best(problem())
    study = Study(problem(), bench.op.space(problem(), DEVICE), config, sampler=None)  # type: ignore[arg-type]
    assert not study.record(config, evaluation(Stage.ANALYTIC, 2.0))
    assert study.record(config, evaluation(Stage.PREDICTED, 5.0))
    assert not study.record(config, evaluation(Stage.PRIOR, 1.0))
    assert (study.limit_us, study.begun) == (5.0, 1)


def test_the_store_never_names_a_stopped_candidate_winner(bench: Bench, store_session: int):
    fast, slow = whole_space(bench)[:2]
    store: Store = bench.store
    for config, stage, us in ((fast, Stage.ANALYTIC, 1.0), (slow, Stage.PREDICTED, 5.0)):
        found = Evaluation(stage=stage, status=Status.OK, judge=bench.judge, value_us=us)
        store.commit_evaluation(store_session, problem(), config, found)
        store.commit_verification(problem(), config, bench._verify((problem(), config, "interpreter")))
    assert [winner.config for winner in store.winners()] == [slow]
