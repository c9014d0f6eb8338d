"""Whose turn it is: baselines, then the problems by what may be expected of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.search.history import History
from m3gen.search.schedule import Candidate, Schedule
from m3gen.search.study import PATIENCE, Group, Study
from m3gen.space import PowerOfTwo, Space
from m3gen.spec import Problem, Status
from m3gen.testing.fake_op import FakeOp
from tests.search.fakes import problem

SPACE = Space([PowerOfTwo("a", 1, 1 << 20, default=1), PowerOfTwo("b", 1, 1 << 20, default=1)])
FIELD = SPACE.config(0)
OP = FakeOp()


class InOrder:
    """Every config from the other end, so that studies that share candidates rarely meet."""

    def __init__(self, first: int) -> None:
        self._first = first

    def ask(self, space: Space, history: History, count: int) -> list[int]:
        order = ((self._first + step) % len(space) for step in range(len(space)))
        return [id for id in order if id not in history.taken][:count]


def ok(us: float, stage: Stage = Stage.PREDICTED) -> Evaluation:
    return Evaluation(stage=stage, status=Status.OK, judge="judge", value_us=us)


def group(*problems: Problem, **changes: Any) -> Group:
    """Baselines of 10 us are known."""
    studies = [Study(one, SPACE, FIELD, InOrder(50 * n + 1), **changes) for n, one in enumerate(problems)]
    for study in studies:
        study.record(FIELD, ok(10.0))
    return Group(OP, "signature", studies, lambda op, problem, config: "")


def turns(schedule: Schedule, count: int, us: float = 11.0) -> list[Candidate]:
    """The next candidates, each found to take `us` wherever it is tried."""
    found = []
    for _ in range(count):
        candidate = schedule.next()
        assert candidate is not None
        found.append(candidate)
        for study in candidate.studies:
            study.record(candidate.config, ok(us))
    return found


def askers(candidates: Sequence[Candidate]) -> Counter[int]:
    return Counter(candidate.asker.problem.rows for candidate in candidates)


def test_every_problem_of_a_group_asks_in_turn():
    """Sharing candidates leaves all with the same number of evaluations, and the first one asked for ever."""
    loads = (1, 16, 64, 256)
    schedule = Schedule([group(*map(problem, loads))], None)
    assert askers(turns(schedule, 16)) == dict.fromkeys(loads, 4)


def test_a_problem_without_hope_gets_a_quarter_of_the_turns():
    stuck, free = group(problem(1)), group(problem(1, head_dim=64))
    schedule = Schedule([stuck, free], None)
    gains = iter(range(1, 10_000))
    counts: Counter[Group] = Counter()
    for _ in range(PATIENCE * 2 + 100):
        candidate = schedule.next()
        assert candidate is not None
        counts[candidate.group] += 1
        us = 10.0 if candidate.group is stuck else 10.0 * 0.97 ** next(gains)
        candidate.asker.record(candidate.config, ok(us))
    assert not stuck.studies[0].hopeful
    assert free.studies[0].hopeful
    assert counts[stuck] - PATIENCE < 0.3 * (counts[free] - PATIENCE)
    assert counts[stuck] - PATIENCE > 0.15 * (counts[free] - PATIENCE)


def test_a_gain_brings_hope_back_and_a_tie_does_not():
    [study] = group(problem()).studies
    for number in range(PATIENCE):
        study.record(SPACE.config(number + 1), ok(11.0))
    assert not study.hopeful
    study.record(SPACE.config(100), ok(9.9))
    assert not study.hopeful
    study.record(SPACE.config(101), ok(9.0))
    assert study.hopeful


def test_near_its_floor_a_problem_has_no_hope():
    [near], [far] = group(problem(), floor_us=9.5).studies, group(problem(), floor_us=5.0).studies
    assert (near.hopeful, far.hopeful) == (False, True)


def test_the_less_known_problem_catches_up_first():
    known, fresh = group(problem(1)), group(problem(1, head_dim=64))
    for number in range(10):
        known.studies[0].record(SPACE.config(number + 1), ok(11.0))
    first = turns(Schedule([known, fresh], None), 10)
    assert {candidate.group for candidate in first} == {fresh}


def test_catching_up_counts_candidates_of_a_group_once():
    """Four loads share what each asks for: two evaluations behind are two candidates, not two turns of each."""
    loads = (1, 16, 64, 256)
    ahead, behind = group(*map(problem, loads)), group(*(problem(rows, head_dim=64) for rows in loads))
    for study in ahead.studies:
        for number in (101, 102):
            study.record(SPACE.config(number), ok(11.0))
    first = turns(Schedule([ahead, behind], None), 6)
    assert {candidate.group for candidate in first[:2]} == {behind}
    assert Counter(candidate.group for candidate in first)[ahead] >= 1


def test_a_candidate_that_is_taken_back_was_no_turn():
    shared = group(problem(1), problem(16))
    schedule = Schedule([shared], None)
    for _ in range(5):
        candidate = schedule.next()
        assert candidate is not None
        assert candidate.asker.problem.rows in (1, 16)
        schedule.take_back(candidate)
        candidate.asker.record(candidate.config, ok(50.0, Stage.PRIOR))
    assert [study.pending for study in shared.studies] == [set(), set()]
    assert askers(turns(schedule, 4)) == {1: 2, 16: 2}


def test_a_new_best_is_tried_on_the_nearest_problem_of_the_two_nearest_groups():
    here = group(problem(16))
    near = group(problem(1, query_len=2), problem(16, query_len=2))
    next_to_it = group(problem(16, head_dim=64, query_len=2))
    far = group(problem(16, head_dim=64, query_len=2, kv_dtype="e4m3fnuz"))
    schedule = Schedule([far, here, next_to_it, near], None)
    best = SPACE.config(77)
    candidate = Candidate(here, best, tuple(here.studies), baseline=False)
    schedule.spread(candidate, here.studies[0])
    schedule.spread(candidate, here.studies[0])
    tipped = [study for one in (far, near, next_to_it) for study in one.studies if study.tips == [best]]
    assert tipped == [near.studies[1], next_to_it.studies[0]]
    assert tipped[0].ask() == best
    assert tipped[0].tips == []


def test_a_tip_that_is_known_is_passed_over():
    here, near = group(problem(16)), group(problem(16, head_dim=64))
    best = SPACE.config(77)
    schedule = Schedule([here, near], None)
    schedule.spread(Candidate(here, best, tuple(here.studies), baseline=False), here.studies[0])
    near.studies[0].record(best, ok(12.0))
    assert near.studies[0].ask() == SPACE.config(1)


def test_another_op_gets_no_tips():
    here, other = group(problem(16)), group(problem(16))
    other = replace(other, op=replace(OP, name="another"))
    schedule = Schedule([here, other], None)
    schedule.spread(Candidate(here, SPACE.config(5), tuple(here.studies), baseline=False), here.studies[0])
    assert other.studies[0].tips == []
