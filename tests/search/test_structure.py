"""Configs of another structure."""

from __future__ import annotations

import pytest

from m3gen import ops
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.ops.coverage import QUICK
from m3gen.search.prior import Prior
from m3gen.search.sampler import make_sampler
from m3gen.search.structure import structures
from m3gen.search.study import Study
from m3gen.space import Choice, Config, Flag, PowerOfTwo, Space
from m3gen.spec import Status
from m3gen.targets import ARCHITECTURES, default_device
from m3gen.testing.fake_op import FakeOp
from tests.search.fakes import DEVICE, problem


def test_a_choice_that_decides_what_there_is_is_made_otherwise() -> None:
    space = Space(
        [
            Choice("form", ("one", "two", "three"), default="two"),
            Choice("order", ("own", "other"), default="own"),
            PowerOfTwo("splits", 1, 4, default=2, active=lambda c: c["form"] != "one"),
            Flag("merged", default=True, active=lambda c: c["form"] == "three"),
        ]
    )
    config = Config({"form": "two", "order": "other", "splits": 4})
    assert list(structures(config, space)) == [
        Config({"form": "one", "order": "other"}),
        Config({"form": "three", "order": "other", "splits": 4, "merged": True}),
    ]


@pytest.mark.parametrize("name", ops.names())
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_they_are_of_the_space(name: str, arch: str) -> None:
    op, device = ops.get(name), default_device(arch)
    one = next(QUICK.problems([op], device))
    space, config = op.space(one, device), op.default(one, device)
    found = list(structures(config, space))
    assert all(other in space and other.keys() != config.keys() for other in found)
    if name == "index_select":
        assert {other["form"] for other in found} >= {"scores"}


def test_a_search_tries_them_as_soon_as_the_best_that_it_trusts_is_known() -> None:
    op, one = FakeOp(), problem()
    space, field = op.space(one, DEVICE), op.default(one, DEVICE)
    seed = op.best(one)
    study = Study(one, space, field, make_sampler("random", 0), prior=Prior((seed,)))
    study.record(field, found(8.0))
    assert study.ask() not in [*structures(field, space), *structures(seed, space)]
    study.record(seed, found(1.0))
    tips = [*structures(seed, space)]
    assert tips
    assert [study.ask() for _ in tips] == tips
    study.record(field, found(0.5))
    assert study.tips == []


def found(us: float) -> Evaluation:
    return Evaluation(stage=Stage.PREDICTED, status=Status.OK, judge="judge-1", value_us=us)
