from __future__ import annotations

from dataclasses import dataclass

import pytest

from m3gen.errors import UserError
from m3gen.space import Constraint, PowerOfTwo, Space
from m3gen.spec import Problem
from m3gen.targets import Device
from m3gen.testing.fake_op import FakeOp
from tests.search.fakes import Bench, problem


@dataclass(frozen=True, slots=True)
class Impossible(FakeOp):
    """Every tile is too large for one rule or too small for the other."""

    def space(self, problem: Problem, device: Device) -> Space:
        return Space(
            [PowerOfTwo("tile", 16, 128, default=64), PowerOfTwo("warps", 1, 4, default=4)],
            [
                Constraint("shared_bytes", ("tile",), lambda c: c["tile"] < 32, "no room"),
                Constraint("load_width", ("tile", "warps"), lambda c: c["tile"] > 16, "too narrow"),
            ],
        )


def test_an_empty_space_says_which_rules_emptied_it(bench: Bench):
    bench.op = Impossible()
    with pytest.raises(UserError) as refused:
        bench.session(problem())
    line = str(refused.value)
    assert "no configuration of fake is valid" in line
    assert "of 12 shared_bytes refuses 9 (no room); load_width refuses 3 (too narrow)" in line
    assert "\n" not in line
    assert bench.pools == []
