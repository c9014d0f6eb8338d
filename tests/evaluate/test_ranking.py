"""Which candidate is the better one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.ranking import TIE, ranked
from m3gen.spec import Status

REGISTERS = {"small": 32, "medium": 64, "large": 256}

times = st.floats(1e-3, 1e6)
keys = st.lists(st.sampled_from([*REGISTERS, "unknown"]), max_size=3).map(tuple)


def evaluation(value_us: float, *facts: str, stage: Stage = Stage.PREDICTED) -> Evaluation:
    return Evaluation(stage=stage, status=Status.OK, judge="judge-1", value_us=value_us, facts=facts)


def order(*evaluations: Evaluation) -> list[int]:
    return list(ranked(dict(enumerate(evaluations)), REGISTERS.get))


def test_the_faster_first() -> None:
    assert order(evaluation(3.0, "small"), evaluation(1.0, "large"), evaluation(2.0, "small")) == [1, 2, 0]


def test_a_tie_goes_to_the_fewest_registers_of_any_launch() -> None:
    assert order(evaluation(5.0, "large", "small"), evaluation(5.01, "medium")) == [1, 0]


def test_the_baseline_stands_against_what_does_not_clearly_beat_it() -> None:
    baseline = replace(evaluation(5.0, "large", "large"), environment={"baseline": True})
    assert order(evaluation(5.01, "small"), baseline) == [1, 0]
    assert order(evaluation(4.5, "small"), baseline) == [0, 1]


def test_then_to_the_fewest_launches() -> None:
    assert order(evaluation(5.0, "medium", "small"), evaluation(5.01, "medium")) == [1, 0]


def test_then_to_the_faster() -> None:
    assert order(evaluation(5.01, "medium"), evaluation(5.0, "medium")) == [1, 0]


def test_of_equal_code_the_simpler_goes_first() -> None:
    plain, odd = (replace(evaluation(5.0, "medium"), environment={"departures": n}) for n in (1, 2))
    assert order(odd, plain) == [1, 0]
    assert order(replace(odd, value_us=4.99), plain) == [0, 1]


def test_equals_keep_their_order() -> None:
    assert order(*[evaluation(5.0, "medium")] * 3) == [0, 1, 2]


def test_measured_times_do_not_tie() -> None:
    slow, fast = (evaluation(us, name, stage=Stage.MEASURED) for us, name in ((5.01, "small"), (5.0, "large")))
    assert order(slow, fast) == [1, 0]


def test_registers_are_asked_for_ties_alone() -> None:
    asked: list[str] = []

    def registers(key: str) -> int:
        asked.append(key)
        return 64

    field = [evaluation(5.0, "a"), evaluation(10.0, "b"), evaluation(10.01, "c"), evaluation(20.0, "d")]
    following = ranked(dict(enumerate(field)), registers)
    assert next(following) == 0
    assert asked == []
    next(following)
    assert asked == ["b", "c"]


@given(st.lists(st.builds(lambda us, facts: evaluation(us, *facts), times, keys)))
def test_nothing_is_lost_and_nothing_goes_before_what_is_clearly_faster(found: list[Evaluation]) -> None:
    places = order(*found)
    assert sorted(places) == list(range(len(found)))
    values = [found[place].value_us or 0.0 for place in places]
    fastest = [min(values[position:]) for position in range(len(values))]
    assert all(value <= best * (1 + TIE) * (1 + 1e-9) for value, best in zip(values, fastest, strict=True))


@given(st.lists(st.tuples(st.floats(5.0, 5.5), keys, st.booleans()), min_size=1))
def test_the_order_of_some_does_not_depend_on_the_others(field: list[tuple[float, tuple[str, ...], bool]]) -> None:
    found = {number: evaluation(us, *facts) for number, (us, facts, _) in enumerate(field)}
    some = {number: found[number] for number, (_, _, chosen) in enumerate(field) if chosen}
    among_all = [number for number in ranked(found, REGISTERS.get) if number in some]
    assert list(ranked(some, REGISTERS.get)) == among_all
