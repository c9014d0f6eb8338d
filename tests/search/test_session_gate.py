"""Finalists before the gate: ties, verdicts shared and stored, the next one when the best fails."""

from __future__ import annotations

import random
from typing import Any

import pytest

from m3gen.evaluate.launched import DUPLICATE_OF
from m3gen.evaluate.place import gates
from m3gen.evaluate.verification import Verification
from m3gen.search.consolidation import consolidated_winners, text_of
from m3gen.space import Config
from m3gen.spec import Problem, Status
from tests.search.fakes import DEVICE, Bench, Dies, Hangs, problem, whole_space


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


def test_a_wrong_candidate_is_no_incumbent_of_the_next_session(bench: Bench):
    """It would stop slower ones that are right."""
    best = bench.op.best(problem())
    bench.wrong = {best}
    bench.session(budget="1000").run()
    result = bench.session(budget="1000").run()
    assert result.progress.best[problem()].value_us == 2.0
    assert result.rows[0].value_us == 2.0


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
    winners = consolidated_winners(bench.store.verified(), lambda problem: text_of(bench.op, problem))
    assert {one.problem: (one.config, one.evaluation.value_us, one.verification) for one in winners} == {
        row.problem: (row.config, row.value_us, row.verification) for row in rows
    }


@pytest.mark.parametrize("seed", range(6))
def test_the_store_names_the_same_winner_of_one_problem(bench: Bench, seed: int):
    chance = random.Random(seed)
    configs = whole_space(bench)
    bench.cost = lambda us: 5.0 * 1.007 ** (us * 7 % 11)
    bench.registers = {config: chance.choice((32, 64, 96, 128)) for config in configs}
    bench.wrong = set(chance.sample(configs, 8))
    for rows in (16, 64, 128):  # verdicts are shared, so the later ones know several
        (row,) = bench.session(problem(rows), budget="1000").run().rows
        assert next(one for one in bench.store.winners() if one.problem == row.problem).config == row.config


def test_problems_that_tie_share_one_config(bench: Bench):
    """A module less: the winners of its neighbours are within a tie of each problem's own."""
    bench.cost = lambda us: 100.0 + us / 2
    bench.wrong = {bench.op.default(problem(), DEVICE)}  # it would stand against them all
    rows = bench.session(problem(16), problem(64), problem(128), budget="1000").run().rows
    (config,) = {row.config for row in rows}
    for row in rows:
        own = bench.store.evaluations(row.problem, config=config)[-1].evaluation
        fastest = min(one.evaluation.value_us or 0 for one in bench.store.evaluations(row.problem))
        assert row.value_us == own.value_us <= 1.02 * fastest
        assert row.verification.ok


def test_equal_registers_go_to_fewer_launches(bench: Bench):
    bench.cost = lambda us: 5.0
    (row,) = bench.session(budget="1000").run().rows
    assert row.config.get("merged") is not False


def test_equal_machine_code_is_judged_once(bench: Bench):
    """Options that change nothing make another config of it: the second says of which it is a duplicate."""
    pair = [config for config in whole_space(bench) if config["split"] == "none" and config["tile"] == 128]
    bench.code = lambda config: "the same" if config in pair else config.sha
    bench.session(budget="1000").run()
    assert len(pair) == 3
    records = {r.config: r.evaluation for r in bench.store.evaluations(problem()) if r.config in pair}
    assert len({one.value_us for one in records.values()}) == 1
    [first] = [config for config, one in records.items() if DUPLICATE_OF not in one.environment]
    assert {one.environment.get(DUPLICATE_OF) for one in records.values()} == {None, first.sha}
    again = bench.session(budget="1000")
    assert again.run().ended == "nothing to do"


@pytest.mark.parametrize("seed", range(3))
def test_of_equal_machine_code_the_simpler_is_shipped(bench: Bench, seed: int):
    """Whichever was tried first."""
    bench.cost = lambda us: 5.0
    bench.wrong = {bench.op.default(problem(), DEVICE)}
    bench.code = lambda config: "the same"
    (row,) = bench.session(budget="1000", seed=seed).run().rows
    default = bench.op.default(problem(), DEVICE)
    assert sum(default.get(name) != value for name, value in row.config.items()) == 1
    assert bench.store.winners()[0].config == row.config


def test_a_slower_candidate_is_no_tie_however_few_its_registers(bench: Bench):
    bench.registers = dict.fromkeys(whole_space(bench), 32) | {bench.op.best(problem()): 500}
    (row,) = bench.session(budget="1000").run().rows
    assert row.config == bench.op.best(problem())


def test_waiting_for_verdicts_does_not_ask_the_store_at_every_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """With two hundred problems the driver once asked it thousands of times a second, on a core of its own."""
    asked: list[Config] = []
    verification = bench.store.verification

    def counted(problem: Problem, config: Config, *args: Any, **options: Any) -> Verification | None:
        asked.append(config)
        return verification(problem, config, *args, **options)

    monkeypatch.setattr(bench.store, "verification", counted)
    counts = []
    for idle in (0, 50):
        bench.idle = idle
        bench.template = f"v{idle}"  # nothing of the first session holds for the second
        bench.session(problem(1), problem(16), budget="30").run()
        counts.append(len(asked))
        asked.clear()
    assert len(bench.verifications) == 4
    assert counts[0] == counts[1]


def test_candidates_that_tie_give_way_to_one_that_serves_more_before_the_gate(bench: Bench):
    """Each verdict costs seconds, and what is not in the table needs none."""
    # The best of each load ties with those a step away, and one of them with the best of the next load.
    bench.cost = lambda us: 1.0 + us / 1000 if us < 3 else 2.0
    rows = bench.session(problem(16), problem(32), problem(64), problem(128), budget="1000").run().rows
    verified = {config for _, config, _ in bench.verifications}
    assert len(rows) == 4
    assert len(verified) == 2
    assert verified == {row.config for row in rows}
