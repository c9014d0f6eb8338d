"""The page that `m3gen validate --write` made last."""

from __future__ import annotations

from pathlib import Path

from m3gen.evaluate.points import shipped
from m3gen.evaluate.timing import TIMINGS
from m3gen.report.predictor_page import KNOWN_WRONG

PAGE = Path(__file__).parents[2] / "docs/predictor.md"


def test_the_page_is_of_this_model_and_holds_every_shipped_point() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith("Made by `m3gen validate ")
    assert KNOWN_WRONG in text
    assert all(timing.version in text for timing in TIMINGS.values())
    known = shipped()
    assert [one.id for one in known.points if f"`{one.id}`" not in text] == []
    assert [one.what for one in (*known.orders, *known.choices) if one.what not in text] == []
