from __future__ import annotations

from dataclasses import replace

import pytest

from m3gen.evaluate.points import Choice, Order, Point, PointSet, Term
from m3gen.evaluate.validation import Outcome, candidate, evaluation, requests, validate
from m3gen.space import Config
from m3gen.targets import device
from tests.evaluate.compiled import compiled, failing

LONG = Term(op="index_score", tp=4, rows=64, context=32768)
SHORT = replace(LONG, context=2048, sign=-1)


def point(*terms: Term, **changes: object) -> Point:
    values = {
        "id": "one",
        "group": "score",
        "device": "H200",
        "source": "https://example.org",
        "what": "",
        "published_us": (100.0,),
        "terms": terms,
    }
    return Point(**{**values, **changes})  # type: ignore[arg-type]


def outcome(one: Point) -> Outcome:
    points = PointSet((one,))
    [found] = validate(points, compiled(requests(points))).outcomes
    return found


def test_loads_of_one_configuration_are_one_compile() -> None:
    [request] = requests(PointSet((point(LONG, SHORT),)))
    assert [problem.context for problem in request.problems] == [32768, 2048]


def test_another_configuration_is_another_compile() -> None:
    wider = replace(SHORT, config=Config({"num_warps": 8}))
    assert len(requests(PointSet((point(LONG, wider),)))) == 2


def test_a_load_that_is_no_bucket_is_predicted_as_it_is() -> None:
    """Rounded up, 128 tokens would be 1,024."""
    one = candidate(replace(LONG, context=128), device("H200"))
    assert one.problem.context == 128
    assert outcome(point(replace(LONG, context=128))).predicted_us < outcome(point(LONG)).predicted_us


def test_a_point_is_the_sum_of_its_terms_with_their_signs() -> None:
    high, low = outcome(point(LONG)), outcome(point(replace(SHORT, sign=1)))
    both = outcome(point(LONG, SHORT))
    assert both.predicted_us == pytest.approx(high.predicted_us - low.predicted_us)
    assert both.terms["memory"] == pytest.approx(high.terms["memory"] - low.terms["memory"], abs=1e-3)
    assert both.terms["launch"] == 0
    assert both.low_us <= both.predicted_us <= both.high_us


def test_a_prediction_is_within_tolerance_or_not() -> None:
    predicted = outcome(point(LONG)).predicted_us
    near = outcome(point(LONG, published_us=(predicted / 1.2,)))
    far = outcome(point(LONG, published_us=(predicted / 1.4,)))
    assert (near.within_tolerance, far.within_tolerance) == (True, False)
    assert outcome(point(LONG, published_us=(predicted / 1.4,), tolerance=0.5)).within_tolerance
    assert near.ratio == pytest.approx(1.2)


def test_a_published_time_is_inside_the_interval_or_not() -> None:
    high = outcome(point(LONG)).high_us
    assert outcome(point(LONG, published_us=(high * 0.99,))).inside_interval
    assert not outcome(point(LONG, published_us=(high * 1.01,))).inside_interval


def test_what_does_not_compile_fails_its_point_alone() -> None:
    vector = replace(LONG, config=Config({"scorer": "vector", "num_warps": 8}))
    points = PointSet((point(LONG, id="good"), point(vector, id="bad")))
    found = validate(points, failing(requests(points), lambda one: one.config["scorer"] == "vector"))
    good, bad = found.outcomes
    assert good.predicted_us is not None
    assert (bad.predicted_us, bad.reason) == (None, "index_score: compile: no such layout")
    assert bad in found.missed


def test_context_is_shown_and_not_judged() -> None:
    points = PointSet((point(LONG, published_us=(1.0,), context_only="another kernel"),))
    found = validate(points, compiled(requests(points)))
    assert not found.outcomes[0].within_tolerance
    assert (found.judged, found.missed) == ((), ())


def test_an_order_holds_when_the_slower_one_is_predicted_slower() -> None:
    long, short = point(LONG, id="long"), point(replace(SHORT, sign=1), id="short")
    right, wrong = Order(what="", slower=long, faster=short), Order(what="", slower=short, faster=long)
    points = PointSet((long, short), (right, wrong))
    found = validate(points, compiled(requests(points)))
    assert [one.holds for one in found.orders] == [True, False]


def test_the_rank_of_a_shipped_choice() -> None:
    choice = Choice(
        id="splits",
        device="H200",
        source="",
        what="",
        term=replace(LONG, config=Config({"share": "splits"})),
        parameter="splits",
        shipped=1,
        alternatives=(1, 16, 256),
    )
    points = PointSet(choices=(choice,))
    [found] = validate(points, compiled(requests(points))).choices
    assert sorted(found.times_us) == [1, 16, 256]
    assert found.rank == 1 + sum(time < found.times_us[1] for time in found.times_us.values())
    assert found.rank > 1
    assert found.tied_rank == 1 + sum(time * 1.02 < found.times_us[1] for time in found.times_us.values())
    assert set(found.order) == set(found.times_us) - set(found.refuses)
    assert found.regret == pytest.approx(found.times_us[1] / found.times_us[found.best] - 1)
    broken = failing(requests(points), lambda one: one.config["splits"] == 1)
    [found] = validate(points, broken).choices
    assert (found.rank, sorted(found.times_us)) == (None, [16, 256])


def test_every_prediction_is_of_the_model_of_the_device() -> None:
    [(request, result)] = compiled(requests(PointSet((point(LONG),))))
    direct = evaluation(result, 0, request.problems[0], request.config, device("H200"))
    found = outcome(point(LONG))
    assert (found.predicted_us, found.judges) == (direct.value_us, (direct.judge,))
