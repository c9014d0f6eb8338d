"""Portfolios against every set there is, on small matrices."""

from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.search import portfolio as module
from m3gen.search.portfolio import EARNS, Portfolio, portfolio, stored_times
from m3gen.space import Config
from m3gen.spec import ROW_BUCKETS, Problem, Status
from m3gen.store import Store
from tests.store import samples

PROBLEMS = [samples.problem(rows=rows) for rows in ROW_BUCKETS]
CONFIGS = [Config({"number": number}) for number in range(12)]

Matrix = dict[Problem, dict[Config, float]]


@st.composite
def matrices(draw: st.DrawFn, most_configs: int = 5, most_problems: int = 5) -> Matrix:
    """Times of a few configs on a few problems, some of which did not run."""
    configs = CONFIGS[: draw(st.integers(1, most_configs))]
    time = st.one_of(st.none(), st.sampled_from([1.0, 1.01, 1.5, 2.0, 3.0]), st.floats(1.0, 9.0))
    return {
        problem: {config: us for config in configs if (us := draw(time)) is not None}
        for problem in PROBLEMS[: draw(st.integers(1, most_problems))]
    }


def cost(times: Matrix, chosen: tuple[Config, ...]) -> tuple[int, float]:
    """Problems that nothing of the set ran on; worst regret times geometric mean over the others."""
    regrets = []
    for known in times.values():
        ran = [known[config] for config in chosen if config in known]
        if ran:
            regrets.append(min(ran) / min(known.values()))
    answerable = sum(bool(known) for known in times.values())
    mean = math.exp(sum(map(math.log, regrets)) / len(regrets)) if regrets else 1.0
    return answerable - len(regrets), max(regrets, default=1.0) * mean


def every_set(times: Matrix, size: int) -> list[tuple[Config, ...]]:
    return list(combinations(sorted({c for known in times.values() for c in known}, key=lambda c: c.sha), size))


def chosen(found: Portfolio) -> tuple[Config, ...]:
    return tuple(member.config for member in found.members)


@given(matrices(), st.integers(1, 4))
def test_no_set_of_its_size_costs_less(times: Matrix, most: int):
    found = portfolio(times, most)
    mine = cost(times, chosen(found))
    assert len(found.members) <= most
    for rival in every_set(times, len(found.members)):
        assert mine[0] <= cost(times, rival)[0]
        if mine[0] == cost(times, rival)[0]:
            assert mine[1] <= cost(times, rival)[1] * (1 + 1e-9)


@given(matrices(), st.integers(1, 4))
def test_one_more_would_serve_no_problem_more_and_earn_less_than_it_must(times: Matrix, most: int):
    found = portfolio(times, most)
    size = len(found.members)
    if 0 < size < most:
        mine = cost(times, chosen(found))
        for rival in every_set(times, size + 1):
            unserved, product = cost(times, rival)
            assert unserved >= mine[0]
            assert product * (1 + EARNS) > mine[1] * (1 - 1e-9)


@given(matrices(), st.integers(2, 4))
def test_the_last_one_earned_its_place(times: Matrix, most: int):
    found = portfolio(times, most)
    if len(found.members) > 1:
        mine = cost(times, chosen(found))
        best = min(cost(times, rival) for rival in every_set(times, len(found.members) - 1))
        assert mine[0] < best[0] or mine[1] * (1 + EARNS) <= best[1] * (1 + 1e-9)


@given(matrices())
def test_regrets_are_those_of_whoever_serves(times: Matrix):
    found = portfolio(times, 3)
    served = {problem: member.config for member in found.members for problem in member.serves}
    assert served.keys() == found.regrets.keys()
    assert {*served, *found.unserved} == set(times)
    for problem, config in served.items():
        assert found.regrets[problem] == times[problem][config] / min(times[problem].values()) >= 1.0
    assert found.worst == max(found.regrets.values(), default=1.0)
    assert 1.0 <= found.geometric_mean <= found.worst * (1 + 1e-9)
    assert found.members or not any(times.values())


@settings(max_examples=25)
@given(matrices(most_configs=12, most_problems=8), st.integers(1, 4))
def test_exchanges_find_what_looking_at_all_sets_finds_or_nearly(times: Matrix, most: int):
    exact = portfolio(times, most)
    before, module._ALL_SETS = module._ALL_SETS, 0
    try:
        found = portfolio(times, most)
    finally:
        module._ALL_SETS = before
    mine, best = cost(times, chosen(found)), cost(times, chosen(exact))
    if len(found.members) == len(exact.members):
        assert mine[0] == best[0] or mine[0] <= best[0] + 1
        assert mine[0] > best[0] or mine[1] <= best[1] * 1.5


def test_a_second_one_must_earn_two_percent():
    first, second = CONFIGS[:2]
    times = {PROBLEMS[0]: {first: 1.0, second: 1.5}, PROBLEMS[1]: {first: 1.012, second: 1.0}}
    assert chosen(portfolio(times)) == (first,)  # worst 1.012, mean 1.006: 1.8 % together
    times[PROBLEMS[1]] = {first: 1.014, second: 1.0}
    assert set(chosen(portfolio(times))) == {first, second}


def test_each_dtype_has_a_member_where_configs_do_not_meet():
    bf16, fp8 = PROBLEMS[0], samples.problem(kv_dtype="e4m3fnuz", kv_scale="scalar")
    found = portfolio({bf16: {CONFIGS[0]: 1.0}, fp8: {CONFIGS[1]: 2.0}})
    assert {member.config: member.serves for member in found.members} == {
        CONFIGS[0]: (bf16,),
        CONFIGS[1]: (fp8,),
    }
    assert portfolio({bf16: {CONFIGS[0]: 1.0}, fp8: {CONFIGS[1]: 2.0}}, most=1).unserved != ()


def test_a_problem_without_a_time_is_unserved():
    assert portfolio({PROBLEMS[0]: {}}) == Portfolio((), {}, (PROBLEMS[0],))
    assert portfolio({}) == Portfolio((), {}, ())


def test_times_of_the_store_are_of_one_judge_and_not_of_what_is_wrong():
    problem = PROBLEMS[0]
    with Store.open("sqlite://") as store:
        session = store.begin({}, [problem])

        def commit(number: int, us: float, judge: str, stage: Stage = Stage.PREDICTED) -> None:
            source = {"source_sha": "source-1"}
            found = Evaluation(stage=stage, status=Status.OK, judge=judge, value_us=us, environment=source)
            store.commit_evaluation(session, problem, CONFIGS[number], found)

        commit(0, 1.0, "predict-amd-1")
        commit(1, 2.0, "predict-amd-2")
        commit(2, 3.0, "predict-amd-2")
        commit(3, 0.1, "predict-amd-2", Stage.ANALYTIC)
        store.commit_verification(problem, CONFIGS[2], samples.verified(Status.CORRECTNESS))
        assert stored_times(store, "gfx942", "sparse_decode") == {problem: {CONFIGS[1]: 2.0}}
        assert stored_times(store, "gfx950", "sparse_decode") == {}
        commit(3, 5.0, "measure-1", Stage.MEASURED)
        assert stored_times(store, "gfx942", "sparse_decode") == {problem: {CONFIGS[3]: 5.0}}
        store.end(session, "budget")
