"""Consolidation against every set there is, on small matrices; and what it may never do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.evaluate.evaluation import Stage
from m3gen.evaluate.ranking import TIE
from m3gen.search.consolidation import Rival, consolidated, stored_winners
from m3gen.space import Config
from m3gen.spec import ROW_BUCKETS, Problem, Status
from m3gen.store import Store, Winner
from tests.store import samples
from tests.tables import winners

LOADS = [samples.problem(rows=rows) for rows in ROW_BUCKETS[:3]]
PROBLEMS = [
    *LOADS,
    *(replace(one, kv_dtype="e4m3fnuz", kv_scale="scalar") for one in LOADS),  # another text
    *(replace(one, kv_heads=2) for one in LOADS),  # another shard, the same text
]
CONFIGS = [Config({"number": number}) for number in range(6)]


def text(problem: Problem) -> str:
    return problem.kv_dtype


@st.composite
def rivals(draw: st.DrawFn) -> dict[Problem, list[Rival]]:
    """A few problems, each with the winner first, anything behind it."""
    time = st.sampled_from([10.0, 10.1, 10.19, 10.21, 12.0])
    found = {}
    for problem in draw(st.lists(st.sampled_from(PROBLEMS), min_size=1, unique=True)):
        stage = draw(st.sampled_from([Stage.PREDICTED, Stage.PREDICTED, Stage.MEASURED]))
        configs = draw(st.lists(st.sampled_from(CONFIGS), min_size=1, unique=True))
        ordered = sorted((Rival(config, draw(time), stage) for config in configs), key=lambda one: one.us)
        found[problem] = ordered
    return found


def allowed(found: list[Rival]) -> set[Config]:
    if found[0].stage is Stage.MEASURED:
        return {found[0].config}
    return {one.config for one in found if one.us <= (1 + TIE) * min(one.us for one in found)}


@given(rivals())
def test_every_problem_has_one_of_its_own_rivals_within_the_regret(found: dict[Problem, list[Rival]]):
    chosen = consolidated(found, text)
    assert chosen.keys() == found.keys()
    assert all(chosen[problem] in allowed(found[problem]) for problem in found)


@given(rivals())
def test_no_smaller_set_of_modules_serves_them(found: dict[Problem, list[Rival]]):
    chosen = consolidated(found, text)
    for one in {text(problem) for problem in found}:
        alike = [problem for problem in found if text(problem) == one]
        modules = {chosen[problem] for problem in alike}
        for fewer in combinations(CONFIGS, len(modules) - 1):
            assert not all(allowed(found[problem]) & set(fewer) for problem in alike)


@given(rivals(), st.randoms(use_true_random=False))
def test_the_order_in_which_problems_come_does_not_matter(
    found: dict[Problem, list[Rival]], chance: random.Random
):
    order = list(found)
    chance.shuffle(order)
    assert consolidated({problem: found[problem] for problem in order}, text) == consolidated(found, text)


@given(rivals())
def test_consolidating_what_is_consolidated_changes_nothing_when_only_the_chosen_are_left(
    found: dict[Problem, list[Rival]],
):
    chosen = consolidated(found, text)
    left = {problem: [one for one in found[problem] if one.config == chosen[problem]] for problem in found}
    assert consolidated(left, text) == chosen


def predicted(*times: tuple[Config, float]) -> list[Rival]:
    return [Rival(config, us, Stage.PREDICTED) for config, us in times]


def test_a_problem_alone_keeps_its_winner():
    """That is the default or the frugal one of those that tie, not the fastest."""
    winner, faster = CONFIGS[:2]
    assert consolidated({PROBLEMS[0]: predicted((winner, 10.1), (faster, 10.0))}, text) == {PROBLEMS[0]: winner}


def test_what_other_groups_use_goes_first_among_sets_as_small():
    a, b = CONFIGS[:2]
    other = PROBLEMS[3]
    for used, faster in ((a, b), (b, a)):
        here = predicted((faster, 10.0), (used, 10.1))
        there = {one: predicted((used, 5.0)) for one in PROBLEMS[3:6]}
        chosen = consolidated({PROBLEMS[0]: here, **there}, text)
        assert chosen[PROBLEMS[0]] == chosen[other] == used


def test_shards_of_one_text_share_a_module():
    a, b = CONFIGS[:2]
    first, other_shard = PROBLEMS[0], PROBLEMS[6]
    found = {first: predicted((a, 10.0), (b, 10.1)), other_shard: predicted((b, 10.0))}
    assert consolidated(found, text) == {first: b, other_shard: b}


def test_a_measured_winner_stays_and_predictions_follow_it():
    a, b = CONFIGS[:2]
    measured = [Rival(a, 10.0, Stage.MEASURED), Rival(b, 10.01, Stage.MEASURED)]
    found = {PROBLEMS[0]: measured, PROBLEMS[1]: predicted((b, 10.0), (a, 10.1))}
    assert consolidated(found, text) == {PROBLEMS[0]: a, PROBLEMS[1]: a}


def test_nothing_slower_than_the_regret_is_named():
    a, b = CONFIGS[:2]
    found = {PROBLEMS[0]: predicted((a, 10.0), (b, 10.5)), PROBLEMS[1]: predicted((b, 10.0), (a, 10.5))}
    assert consolidated(found, text) == {PROBLEMS[0]: a, PROBLEMS[1]: b}
    assert len(set(consolidated(found, text, 0.06).values())) == 1


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as store:
        yield store


def keep(store: Store, found: Winner) -> None:
    key = "facts of " + found.config.sha[:8]
    store.commit_facts(key, replace(samples.facts(), compiler=found.compiler))
    session = store.begin({}, [found.problem])
    environment = {"source_sha": found.verification.source_sha}
    evaluation = replace(found.evaluation, facts=(key,), environment=environment)
    store.commit_evaluation(session, found.problem, found.config, evaluation)
    store.commit_verification(found.problem, found.config, found.verification)
    store.end(session, "budget")


def two_loads(store: Store) -> tuple[Problem, Problem, Config, Config]:
    """`a` wins at one row, `b` at 16, each a tie for the other."""
    one, many = winners.problem(), winners.problem(rows=16)
    a, b = winners.config(one), winners.config(one, num_warps=2)
    for problem, times in ((one, (10.0, 10.3)), (many, (10.3, 10.0))):
        for config, us in zip((a, b), times, strict=True):
            keep(store, winners.winner(problem, us, chosen=config))
    return one, many, a, b


def test_winners_of_a_store_are_named_with_their_own_times(store: Store):
    one, many, a, b = two_loads(store)
    apart = stored_winners(store, regret=0.0)
    assert {found.problem: found.config for found in apart} == {one: a, many: b}
    together = stored_winners(store, regret=0.04)
    assert len({found.config for found in together}) == 1
    times = {(one, a): 10.0, (one, b): 10.3, (many, a): 10.3, (many, b): 10.0}
    assert all(found.evaluation.value_us == times[found.problem, found.config] for found in together)


def test_a_config_that_failed_the_gate_serves_nothing(store: Store):
    one, many, a, b = two_loads(store)
    shard = replace(one, kv_heads=2)  # the same text, another signature: a verdict of its own
    keep(store, winners.winner(shard, 10.0, chosen=a))
    keep(store, winners.winner(shard, 10.1, chosen=b, status=Status.CORRECTNESS))
    found = {winner.problem: winner.config for winner in stored_winners(store, regret=0.04)}
    assert found == {one: a, many: a, shard: a}


def test_what_only_the_interpreter_ran_serves_nothing_for_amd(store: Store):
    """The table would refuse it, and with it the whole export."""
    one, many = winners.problem(), winners.problem(rows=16)
    a, b = winners.config(one), winners.config(one, num_warps=2)
    shard = replace(one, kv_heads=2)
    for problem in (one, many):
        keep(store, winners.winner(problem, 10.0, chosen=b))
    keep(store, winners.winner(shard, 10.0, chosen=a))
    keep(store, winners.winner(shard, 10.1, chosen=b, on="interpreter"))
    found = {winner.problem: winner.config for winner in stored_winners(store)}
    assert found == {one: b, many: b, shard: a}


def test_what_was_found_under_an_older_template_gives_way_to_what_holds(store: Store):
    """A store from before a template changed once refused every export for good, whatever was tuned anew."""
    one = winners.problem()
    a, b = winners.config(one), winners.config(one, num_warps=2)
    older = winners.stale(winners.finding(one, 9.0, chosen=a)).winner
    keep(store, older)
    assert [found.config for found in stored_winners(store)] == [a]  # nothing holds: the export says why
    keep(store, winners.winner(one, 10.0, chosen=b))
    assert [found.config for found in stored_winners(store)] == [b]
