"""Budgets as people write them."""

from __future__ import annotations

import pytest

from m3gen.errors import UserError
from m3gen.search.budget import Budget


@pytest.mark.parametrize(
    ("text", "evaluations", "seconds"),
    [
        ("200", 200, None),
        ("90s", None, 90.0),
        ("10m", None, 600.0),
        ("1.5h", None, 5400.0),
        ("200,8m", 200, 480.0),
        ("8m, 200", 200, 480.0),
    ],
)
def test_parses(text: str, evaluations: int | None, seconds: float | None):
    budget = Budget.parse(text)
    assert budget == Budget(evaluations, seconds)
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize(
    "text",
    ["", "0", "0s", "-5", "ten", "10 minutes", "1.5", "200,300", "1m,2m", "200,", "1e3", "10d", "nan", "²"],
)
def test_refuses_nonsense_in_one_line(text: str):
    with pytest.raises(UserError, match="expected evaluations") as caught:
        Budget.parse(text)
    assert "\n" not in str(caught.value)
