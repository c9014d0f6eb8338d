"""Sessions on a bench of fakes with a real store: how they end, resume, and survive bad candidates."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.evaluate.place import gates
from m3gen.evaluate.verification import Verification
from m3gen.search.progress import Progress
from m3gen.space import Config
from m3gen.spec import Status
from m3gen.store import Store
from m3gen.testing.fake_session import WideOp
from tests.search.fakes import DEVICE, AsksTooMuch, Bench, Dies, Hangs, problem


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Store.open(f"sqlite:///{tmp_path / 'm3gen.db'}") as store:
        yield Bench(store)
        assert store.check() == []


def whole_space(bench: Bench) -> list[Config]:
    return list(bench.op.space(problem(), DEVICE))


# -- how a session ends --------------------------------------------------------------------------------------


def test_ends_by_evaluations_with_the_baseline_among_them(bench: Bench):
    result = bench.session(budget="10").run()
    assert result.ended == "budget"
    assert len(bench.store.evaluations(problem())) == 10
    assert bench.compiles[0] == ((problem(),), bench.op.default(problem(), DEVICE))
    assert result.progress.evaluated == result.progress.predicted == 10
    assert len(result.rows) == 1


@pytest.mark.parametrize("sampler", ["random", "exhaustive", "tpe"])
def test_ends_by_exhaustion_with_the_optimum(bench: Bench, sampler: str):
    result = bench.session(budget="1000", sampler=sampler).run()
    assert result.ended == "exhausted"
    assert len(bench.compiles) == len(whole_space(bench)) == 33
    (row,) = result.rows
    assert row.config == bench.op.best(problem())
    assert (row.value_us, row.baseline_us, row.ratio) == (1.0, 3.0, 3.0)
    assert (row.limit, row.registers, row.waves_per_simd, row.workgroups_per_cu) == ("memory", 64, 2.0, 2)
    assert row.verification.ok
    assert row.field_config == bench.op.default(problem(), DEVICE)
    (winner,) = bench.store.winners()
    assert winner.config == row.config


def test_ends_by_time(bench: Bench):
    def tick() -> None:
        bench.now += 10.0

    bench.on_poll = tick
    result = bench.session(budget="55s").run()
    assert result.ended == "budget"
    assert 1 < len(bench.store.evaluations(problem())) <= 6
    assert result.rows
    assert bench.pools[0].closed


def test_the_baseline_is_evaluated_whatever_the_budget(bench: Bench):
    def tick() -> None:
        bench.now += 10.0

    bench.on_poll = tick
    result = bench.session(problem(1), problem(512), problem(64), problem(16), budget="1s").run()
    assert len(result.rows) == 4
    assert all(row.baseline_us is not None for row in result.rows)


def test_ends_by_stop_and_verifies_nothing(bench: Bench):
    session = bench.session()

    def stop_at_five() -> None:
        if len(bench.compiles) == 5:
            session.stop()

    bench.on_poll = stop_at_five
    result = session.run()
    assert result.ended == "interrupted"
    assert len(bench.store.evaluations(problem())) == len(bench.compiles) == 6
    assert bench.verifications == []
    assert result.rows == ()
    assert all(pool.closed for pool in bench.pools)


def test_a_stop_before_the_run_starts_no_worker(bench: Bench):
    session = bench.session()
    session.stop()
    assert session.run().ended == "interrupted"
    assert bench.pools == []


# -- running again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["12", "1000"])
def test_a_second_run_does_nothing_and_says_the_same(bench: Bench, budget: str):
    first = bench.session(budget=budget).run()
    compiles, verifications, pools = len(bench.compiles), len(bench.verifications), len(bench.pools)
    second = bench.session(budget=budget).run()
    assert second.ended == "nothing to do"
    assert (len(bench.compiles), len(bench.verifications), len(bench.pools)) == (
        compiles,
        verifications,
        pools,
    )
    assert second.rows == first.rows
    assert second.progress.stored == first.progress.evaluated


def test_a_second_run_of_a_spent_time_budget_does_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def tick() -> None:
        bench.now += 10.0

    bench.on_poll = tick
    monkeypatch.setattr("m3gen.store.store.time.monotonic", lambda: bench.now)
    bench.session(budget="55s").run()
    compiles = len(bench.compiles)
    assert bench.session(budget="55s").run().ended == "nothing to do"
    assert len(bench.compiles) == compiles
    assert bench.session(budget="2m").run().ended == "budget"
    assert len(bench.compiles) > compiles


def test_a_partial_run_is_resumed_with_the_difference(bench: Bench):
    class Killed(BaseException):
        pass

    def kill_at_seven() -> None:
        if len(bench.compiles) == 7:
            raise Killed

    bench.on_poll = kill_at_seven
    with pytest.raises(Killed):
        bench.session(budget="20").run()
    assert len(bench.store.evaluations(problem())) == 7
    bench.on_poll = lambda: None
    bench.session(budget="20").run()
    assert len(bench.compiles) == 20
    assert len({config for _, config in bench.compiles}) == 20


def test_a_larger_budget_goes_on(bench: Bench):
    bench.session(budget="10").run()
    result = bench.session(budget="15").run()
    assert result.ended == "budget"
    assert len(bench.compiles) == 15
    assert result.progress.stored == 10


def test_a_changed_template_is_evaluated_anew(bench: Bench):
    bench.session(budget="10").run()
    bench.template = "v2"
    bench.session(budget="10").run()
    assert len(bench.compiles) == 20


def test_another_predictor_predicts_anew_and_failures_stay(bench: Bench):
    bad = bench.op.default(problem(), DEVICE)
    bench.faults[bad] = Dies()
    bench.session(budget="10").run()
    bench.judge = "predict-fake-2"
    bench.session(budget="10").run()
    assert [config for _, config in bench.compiles].count(bad) == 1
    assert len(bench.compiles) == 10 + 9


# -- bad candidates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "status"),
    [(Dies(), Status.COMPILE_ABORT), (Hangs(), Status.TIMEOUT), (AsksTooMuch(), Status.RESOURCES)],
)
def test_a_bad_candidate_costs_only_itself(bench: Bench, fault: Exception, status: Status):
    bad = bench.op.best(problem())
    bench.faults[bad] = fault
    result = bench.session(budget="1000").run()
    assert result.ended == "exhausted"
    failed = [r for r in bench.store.evaluations(problem()) if not r.evaluation.ok]
    assert [(r.config, r.evaluation.status) for r in failed] == [(bad, status)]
    assert failed[0].evaluation.reason
    assert result.progress.failed == {status: 1}
    assert result.rows[0].value_us == 2.0


def test_a_default_that_fails_leaves_no_ratio(bench: Bench):
    bench.faults[bench.op.default(problem(), DEVICE)] = Dies()
    (row,) = bench.session(budget="1000").run().rows
    assert (row.baseline_us, row.ratio) == (None, None)


def test_what_the_static_rung_refuses_is_never_compiled(bench: Bench):
    bench.refused = set(whole_space(bench)[:10])
    result = bench.session(budget="1000").run()
    assert len(bench.compiles) == 23
    assert result.progress.failed == {Status.CONSTRAINT: 10}
    assert bench.session(budget="1000").run().ended == "nothing to do"


def test_everything_failing_ends_without_winners(bench: Bench):
    bench.faults = dict.fromkeys(whole_space(bench), Dies())
    result = bench.session(budget="1000").run()
    assert (result.ended, result.rows) == ("exhausted", ())


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_prediction_that_cannot_be_is_implausible(bench: Bench, value: float):
    bench.cost = lambda us: value if us == 1.0 else us
    result = bench.session(budget="1000").run()
    assert result.progress.failed == {Status.IMPLAUSIBLE: 1}
    assert result.rows[0].value_us == 2.0


def test_a_predictor_that_raises_costs_only_the_candidate(bench: Bench):
    def trip(us: float) -> float:
        if us == 1.0:
            raise ZeroDivisionError("no waves")
        return us

    bench.cost = trip
    result = bench.session(budget="1000").run()
    assert result.progress.failed == {Status.RUNTIME: 1}
    assert result.rows[0].value_us == 2.0


# -- problems together ---------------------------------------------------------------------------------------


def test_one_compile_serves_all_problems_of_a_group(bench: Bench):
    one, many = problem(16), problem(128)
    result = bench.session(one, many, budget="1000").run()
    assert len(bench.compiles) == 33
    assert all(problems == (one, many) for problems, _ in bench.compiles)
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


# -- the gate ------------------------------------------------------------------------------------------------


def test_the_next_candidate_wins_when_the_best_fails_the_gate(bench: Bench):
    best = bench.op.best(problem())
    bench.wrong = {best}
    (row,) = bench.session(budget="1000").run().rows
    assert row.config != best
    assert row.value_us == 2.0
    assert [config for _, config, _ in bench.verifications][:1] == [best]
    stored = bench.store.verification(problem(), best, bench._source_sha(None, problem(), best))
    assert stored is not None
    assert stored.status is Status.CORRECTNESS
    assert bench.store.winners()[0].config == row.config


@pytest.mark.parametrize(("fault", "status"), [(Dies(), Status.COMPILE_ABORT), (Hangs(), Status.TIMEOUT)])
def test_a_gate_that_dies_or_hangs_is_a_failed_candidate(bench: Bench, fault: Exception, status: Status):
    best = bench.op.best(problem())
    bench.gate_faults[best] = fault
    result = bench.session(budget="1000").run()
    assert result.rows[0].value_us == 2.0
    assert result.progress.failed == {status: 1}


def test_a_gate_that_ran_out_of_time_is_tried_again_by_the_next_session(bench: Bench):
    best = bench.op.best(problem())
    bench.gate_faults[best] = Hangs()
    assert bench.session(budget="1000").run().rows[0].config != best
    del bench.gate_faults[best]
    assert bench.session(budget="1000").run().rows[0].config == best


def test_no_more_than_the_limit_is_tried(bench: Bench):
    bench.wrong = set(whole_space(bench))
    result = bench.session(budget="1000", verify_limit=3).run()
    assert result.rows == ()
    assert len(bench.verifications) == 3


def test_verdicts_are_shared_by_a_group(bench: Bench):
    bench.session(problem(1), problem(16), problem(8), budget="1000").run()
    assert [on for _, _, on in bench.verifications] == ["interpreter", "machine-code"]


def test_a_winner_for_amd_has_run_as_machine_code(bench: Bench):
    (row,) = bench.session(budget="1000").run().rows
    assert row.verification.on == bench.store.winners()[0].verification.on == "machine-code"
    assert bench.session(budget="1000").run().ended == "nothing to do"


def test_a_candidate_that_only_the_interpreter_gets_right_loses_to_the_next(bench: Bench):
    best = bench.op.best(problem())
    bench.miscompiled = {best}
    result = bench.session(budget="1000").run()
    assert (result.rows[0].value_us, result.rows[0].verification.on) == (2.0, "machine-code")
    assert (result.progress.verified, result.progress.failed) == (1, {Status.CORRECTNESS: 1})
    assert bench.store.winners()[0].config == result.rows[0].config != best


def test_a_stored_verdict_of_the_interpreter_is_none_on_machine_code(bench: Bench):
    best = bench.op.best(problem())
    source = bench._source_sha(None, problem(), best)
    known = Verification(status=Status.OK, on="interpreter", source_sha=source)
    bench.store.commit_verification(problem(), best, known)
    (row,) = bench.session(budget="1000").run().rows
    assert bench.verifications == [(problem(), best, "machine-code")]
    assert row.verification.on == "machine-code"


def test_code_of_another_compiler_is_run_anew(bench: Bench):
    bench.session(budget="1000").run()
    bench.verifications.clear()
    bench.compiler = "triton-newer"
    (row,) = bench.session(budget="1000").run().rows
    assert "machine-code" in [on for _, _, on in bench.verifications]
    assert row.verification.environment == {"compiler": "triton-newer"}
    bench.verifications.clear()
    bench.session(budget="1000").run()
    assert bench.verifications == []


def test_nvidia_is_through_with_the_interpreter():
    assert (gates("gfx950")[-1], gates("sm_90"), gates("sm_100")) == (
        "machine-code",
        ("interpreter",),
        ("interpreter",),
    )


def test_ties_go_to_fewer_registers_then_fewer_launches(bench: Bench):
    bench.cost = lambda us: 5.0 + us / 1000  # all within two percent
    bench.wrong = {bench.op.default(problem(), DEVICE)}  # it would stand against them all
    frugal = whole_space(bench)[7]
    bench.registers = {frugal: 32}
    (row,) = bench.session(budget="1000").run().rows
    assert (row.config, row.registers) == (frugal, 32)


def test_a_tie_with_the_default_leaves_the_default(bench: Bench):
    bench.cost = lambda us: 5.0 + us / 1000
    bench.registers = {whole_space(bench)[7]: 32}
    (row,) = bench.session(budget="1000").run().rows
    assert row.config == bench.op.default(problem(), DEVICE)
    assert row.ratio == 1.0
    assert bench.store.winners()[0].config == row.config


@pytest.mark.parametrize("seed", range(6))
def test_the_store_names_the_same_winners(bench: Bench, seed: int):
    """Also where one candidate ties with two that do not tie with each other, and verdicts are shared."""
    chance = random.Random(seed)
    configs = whole_space(bench)
    bench.cost = lambda us: 5.0 * 1.007 ** (us * 7 % 11)
    bench.registers = {config: chance.choice((32, 64, 96, 128)) for config in configs}
    bench.wrong = set(chance.sample(configs, 8))
    rows = bench.session(problem(16), problem(64), problem(128), budget="1000").run().rows
    assert len(rows) == 3
    winners = {winner.problem: winner.config for winner in bench.store.winners()}
    assert winners == {row.problem: row.config for row in rows}


def test_equal_registers_go_to_fewer_launches(bench: Bench):
    bench.cost = lambda us: 5.0
    (row,) = bench.session(budget="1000").run().rows
    assert row.config.get("merged") is not False


def test_a_slower_candidate_is_no_tie_however_few_its_registers(bench: Bench):
    bench.registers = dict.fromkeys(whole_space(bench), 32) | {bench.op.best(problem()): 500}
    (row,) = bench.session(budget="1000").run().rows
    assert row.config == bench.op.best(problem())


# -- around it -----------------------------------------------------------------------------------------------


def test_the_listener_sees_every_phase(bench: Bench):
    seen: list[Progress] = []

    class Watcher:
        def update(self, progress: Progress) -> None:
            seen.append(progress)

    result = bench.session(budget="1000,10m", listener=Watcher()).run()
    assert list(dict.fromkeys(p.phase for p in seen)) == ["search", "verify", "done"]
    assert [p.evaluated for p in seen] == sorted(p.evaluated for p in seen)
    assert seen[0].remaining_s == 600.0
    assert seen[-1] == result.progress
    assert seen[-1].refused == {"narrow": 4}
    assert seen[-1].space_sizes == {problem(): 33}
    assert seen[-1].best[problem()].config == bench.op.best(problem())
    assert seen[-1].compiled == sum(len(bench.op.work(problem(), config)) for config in whole_space(bench))


def test_same_seed_same_search(tmp_path: Path):
    runs = []
    for name in ("a", "b"):
        with Store.open(f"sqlite:///{tmp_path / name}.db") as store:
            bench = Bench(store)
            bench.session(budget="25", sampler="tpe", seed=7).run()
            runs.append([config for _, config in bench.compiles])
    assert runs[0] == runs[1]


def test_an_unknown_sampler_is_refused_before_any_work(bench: Bench):
    with pytest.raises(UserError, match="unknown sampler"):
        bench.session(sampler="magic")


def test_the_parent_imports_neither_torch_nor_triton():
    program = (
        "import sys, m3gen.search.session; sys.exit(bool({'torch', 'triton', 'optuna'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
