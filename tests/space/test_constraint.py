"""Rules see what they declare, no more, and stay silent where what they need is inactive."""

from __future__ import annotations

import pytest

from m3gen.space import Choice, Constraint, Flag, Space


def test_a_violation_carries_code_and_reason():
    rule = Constraint("lds", ("B",), lambda v: int(v["B"]) <= 64, lambda v: f"B={v['B']} is over 64")
    assert rule.violation({"B": 32}) is None
    found = rule.violation({"B": 128})
    assert found is not None
    assert (found.code, found.reason) == ("lds", "B=128 is over 64")


def test_a_rule_is_skipped_where_a_need_is_inactive():
    assert Constraint("never", ("A", "B"), lambda v: False, "").violation({"A": 1}) is None


def test_an_optional_name_may_be_absent():
    rule = Constraint("sum", ("A",), lambda v: int(v["A"]) + int(v.get("B", 0)) < 3, "", optional=("B",))
    assert rule.violation({"A": 2}) is None
    assert rule.violation({"A": 2, "B": 1}) is not None
    assert len(Space([Choice("A", (1, 2, 3), 1)], [rule])) == 2


@pytest.mark.parametrize("holds", [lambda v: v["B"], lambda v: v.get("B"), lambda v: "B" in v])
def test_reading_an_undeclared_name_is_an_error(holds):
    space = Space([Flag("A", False), Flag("B", False)], [Constraint("c", ("A",), holds, "")])
    with pytest.raises(ValueError, match="constraint 'c' reads 'B'"):
        len(space)
    with pytest.raises(ValueError, match="constraint 'c' reads 'B'"):
        space.violations({"A": True, "B": True})


def test_a_rule_on_a_parameter_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="needs 'B'"):
        Space([Choice("A", (1, 2), 1)], [Constraint("c", ("A", "B"), lambda v: True, "")])
