"""Where a session stands, as a picture and as a line."""

from __future__ import annotations

import pytest

from m3gen.evaluate.evaluation import Stage
from m3gen.report import progress as pictures
from m3gen.spec import Status
from tests.report.rows import printed, problem, progress


@pytest.mark.parametrize("width", [80, 120])
def test_the_picture_shows_every_count(width: int) -> None:
    text = printed(pictures.picture(progress(verified=3), "predict-amd-1"), width)
    for part in (
        "searching, 1 min 05 s, at most 2 min 05 s left",
        "1,234",
        "40 (10 from the store)",
        "21 compiled, 9 cached",
        "37",
        "ran past its deadline 2, compiler crashed 1",
        "sparse_decode TP 4 bf16 rows 1",
    ):
        assert part in text
    assert any(line.split() == ["verified", "3"] for line in text.splitlines())


def test_the_best_so_far_says_that_it_is_predicted_and_by_what() -> None:
    text = printed(pictures.picture(progress(), "predict-amd-1"))
    line = next(line for line in text.splitlines() if "rows 1" in line)
    assert line.split()[-4:] == ["12.0", "8.00", "1.50x", "predicted"]
    assert "predicted times are by predict-amd-1" in text


def test_a_problem_of_which_nothing_is_known_stands_there_all_the_same() -> None:
    best = progress().best
    lines = printed(pictures.standings("title", [problem(), problem(rows=64)], best, "predict-amd-1")).splitlines()
    assert next(line for line in lines if "rows 1 " in line).split()[-2:] == ["1.50x", "predicted"]
    assert next(line for line in lines if "rows 64" in line).split()[-4:] == ["-", "-", "-", "-"]


def test_what_was_stopped_early_is_counted_by_rung() -> None:
    found = progress(stopped={Stage.PRIOR: 12, Stage.ANALYTIC: 3})
    assert "before compiling 12, before running 3" in printed(pictures.picture(found, "predict-amd-1"))
    assert "9 cached, 15 stopped, 37 predicted" in pictures.line(found)


def test_without_a_time_budget_no_time_is_left() -> None:
    assert "left" not in printed(pictures.picture(progress(remaining_s=None), "predict-amd-1"))


def test_the_line_counts_failures_by_reason() -> None:
    line = pictures.line(progress(failed={Status.RESOURCES: 4}))
    assert line == (
        "searching, 1 min 05 s, at most 2 min 05 s left: 40 evaluated, 21 compiled, 9 cached, 37 predicted, "
        "0 verified, 4 failed (does not fit the device 4)"
    )
    assert pictures.line(progress(failed={})).endswith("0 failed")
