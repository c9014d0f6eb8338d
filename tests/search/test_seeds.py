"""What a search starts from: shipped rows, the best of near problems and of a sibling arch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen import ops
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.search.neighbours import fitted
from m3gen.search.seeds import FEWEST_EVALUATIONS, MOST_SEEDS, Related
from m3gen.space import Config, Space
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.targets import default_device
from tests.problems import sparse_decode
from tests.store.samples import ROOT

OP = ops.get("sparse_decode")
SHIPPED = ROOT / "tuning_db"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open("sqlite://") as opened:
        yield opened


def space_of(problem: Problem) -> Space:
    return OP.space(problem, default_device(problem.arch))


def field_of(problem: Problem) -> Config:
    return ops.field_config(OP, problem, default_device(problem.arch))


def tuned(store: Store, problem: Problem, count: int, *, judge: str = "judge-1", first: int = 0) -> list[Config]:
    """Evaluations of configs all over the space, the last one the fastest, and one that failed."""
    space = space_of(problem)
    step = len(space) // (count + first + 1)
    configs = [space.config((first + number) * step) for number in range(count)]
    session = store.begin({}, [problem])
    for number, config in enumerate(configs):
        found = Evaluation(stage=Stage.PREDICTED, status=Status.OK, judge=judge, value_us=100.0 - number)
        store.commit_evaluation(session, problem, config, found)
    failed = Evaluation(stage=Stage.PREDICTED, status=Status.RESOURCES, judge="compile-1", reason="no")
    store.commit_evaluation(session, problem, space.config(len(space) - 1), failed)
    stopped = Evaluation(stage=Stage.PRIOR, status=Status.OK, judge=judge, value_us=0.1)
    store.commit_evaluation(session, problem, space.config(len(space) - 2), stopped)
    store.end(session, "budget")
    return configs


def table_rows(arch: str) -> dict[tuple[str, int], Config]:
    """Of TP 4, which is what the problems here are."""
    table = json.loads((SHIPPED / arch / "sparse_decode.json").read_text())
    return {
        (point["key"]["kv_dtype"], point["key"]["rows"]): Config(table["configs"][point["config"]])
        for point in table["points"]
        if (point["key"]["group_size"], point["key"]["kv_heads"]) == (16, 1)
    }


def prior(related: Related, problem: Problem) -> tuple[tuple[Config, ...], int]:
    found = related.prior(problem, space_of(problem), field_of(problem))
    return found.seeds, len(found.siblings)


def test_the_shipped_row_comes_first_and_none_is_the_field(store: Store):
    problem = sparse_decode(rows=16)[0]
    seeds, _ = prior(Related(store, SHIPPED), problem)
    assert seeds[0] == fitted(table_rows("gfx942")["bf16", 16], space_of(problem))
    assert len(seeds) == len(set(seeds)) <= MOST_SEEDS
    assert all(seed in space_of(problem) for seed in seeds)
    assert field_of(problem) not in seeds


def test_a_sibling_arch_gives_one_of_its_rows(store: Store):
    problem = sparse_decode(rows=16)[0]
    theirs = fitted(table_rows("gfx950")["bf16", 16], space_of(problem))
    assert theirs in prior(Related(store, SHIPPED), problem)[0]


def test_nothing_known_is_no_seed(store: Store, tmp_path: Path):
    problem = sparse_decode(rows=16)[0]
    assert prior(Related(store, tmp_path), problem) == ((), 0)
    assert prior(Related(store, None), problem) == ((), 0)


def test_the_best_of_the_nearest_problems_in_the_store(store: Store):
    problem = sparse_decode(rows=16)[0]
    far = tuned(store, sparse_decode(rows=512)[0], 5, first=20)
    near = tuned(store, sparse_decode(rows=32)[0], 5)
    seeds, _ = prior(Related(store, None), problem)
    assert seeds == (near[-1], far[-1])


def test_only_the_newest_judge_says_what_was_best(store: Store):
    problem = sparse_decode(rows=16)[0]
    tuned(store, problem, 5, judge="judge-1")
    newer = tuned(store, problem, 3, judge="judge-2", first=20)
    assert prior(Related(store, None), problem)[0] == (newer[-1],)


def test_siblings_are_evaluations_of_other_problems_in_configs_of_this_space(store: Store):
    problem = sparse_decode(rows=16)[0]
    tuned(store, problem, FEWEST_EVALUATIONS)  # the search knows these as its own
    theirs = tuned(store, sparse_decode("gfx950", rows=16)[0], FEWEST_EVALUATIONS)
    tuned(store, sparse_decode(rows=32)[0], FEWEST_EVALUATIONS - 2)  # with the failure one too few
    [sibling] = Related(store, None).prior(problem, space_of(problem), field_of(problem)).siblings
    assert {fitted(config, space_of(problem)) for config in theirs} - {None} <= sibling.keys()
    assert all(config in space_of(problem) for config in sibling)
    assert None in sibling.values()
    assert 0.1 not in sibling.values()  # stopped before it was compiled


def test_a_table_that_cannot_be_read_gives_no_seeds(store: Store, tmp_path: Path):
    (tmp_path / "gfx942").mkdir()
    (tmp_path / "gfx942" / "sparse_decode.json").write_text("{")
    assert prior(Related(store, tmp_path), sparse_decode(rows=16)[0]) == ((), 0)


def test_the_default_of_the_op_comes_first_where_it_is_not_the_fields(store: Store) -> None:
    """Without it a search of few evaluations once ended at rows slower than what runs untuned."""
    problem, device = sparse_decode()
    default = OP.default(problem, device)
    assert default != field_of(problem)
    prior = Related(store, SHIPPED).prior(problem, space_of(problem), field_of(problem), default)
    assert prior.seeds[0] == default
    assert 1 < len(prior.seeds) <= MOST_SEEDS


def test_what_a_space_without_a_parameter_found_of_the_problem_itself_is_a_sibling(store: Store):
    problem = sparse_decode(rows=16)[0]
    session = store.begin({}, [problem])
    configs = tuned(store, problem, FEWEST_EVALUATIONS + 5)
    for number, config in enumerate(configs):
        older = Config({name: value for name, value in config.items() if name != "schedule"})
        found = Evaluation(stage=Stage.PREDICTED, status=Status.OK, judge="judge-1", value_us=50.0 - number)
        store.commit_evaluation(session, problem, older, found)
    seeds, siblings = prior(Related(store, None), problem)
    assert siblings == 1
    assert seeds[0] == fitted(configs[-1], space_of(problem))
