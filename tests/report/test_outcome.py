"""What came of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from m3gen.evaluate.timing import AMD
from m3gen.report import machine, outcome
from m3gen.targets import device
from tests.report.rows import printed, problem, result, row, verification

MI300X = device("MI300X")
WINNER_FIELDS = {
    *("problem", "tp", "config", "field_config", "value_us", "low_us", "high_us", "baseline_us", "ratio"),
    *("stage", "judge", "limit", "registers", "waves_per_simd", "workgroups_per_cu", "gate", "errors"),
}


@pytest.mark.parametrize("width", [80, 120])
def test_it_says_where_everything_went_and_what_was_left_out(width: int) -> None:
    text = printed(
        outcome.session(
            result(row()),
            MI300X,
            [problem(rows=64)],
            "/data/m3gen.db",
            [Path("tuning_db/gfx942/sparse_decode.json")],
            [Path("generated/gfx942/a.py"), Path("generated/gfx942/b.py")],
        ),
        width,
    )
    for part in (
        "tuning_db/gfx942/sparse_decode.json",
        "generated/gfx942/b.py",
        "/data/m3gen.db",
        "the budget is spent, after 1 min 05 s",
        "40, 10 of them from the store",
        "ran past its deadline 2, compiler crashed 1",
        "load_width 1,200, page_parts 34",
        f"No verified winner yet; the best so far; predicted times are by {AMD.version}",
        "sparse_decode TP 4 bf16 rows 64",
    ):
        assert part in text


def test_without_rows_there_is_no_table() -> None:
    text = printed(outcome.session(result(ended="interrupted"), MI300X, [problem()], "store"))
    assert "winner  " not in text
    assert text.count("none written") == 2
    assert "interrupted" in text


def test_the_object_holds_every_field_of_a_winner() -> None:
    found = outcome.session_object(result(row(problem(rows=16))), MI300X, [], "store", [Path("t.json")], [])
    [winner] = found["winners"]
    assert set(winner) == WINNER_FIELDS
    assert (winner["tp"], winner["stage"], winner["gate"]) == (4, "predicted", "interpreter")
    assert winner["errors"] == {"cases": 2, "row_rms": 2e-3, "mean_abs": 2e-5, "max_abs": 0.5}
    assert winner["problem"]["rows"] == 16
    assert found["without_winner"] == []
    assert found["failures"] == {"compile_abort": 1, "timeout": 2}
    assert found["refused"] == {"load_width": 1200, "page_parts": 34}
    assert found["tables"] == ["t.json"]


def test_a_problem_without_a_winner_comes_with_its_best_candidate() -> None:
    found = outcome.session_object(result(), MI300X, [problem(), problem(rows=64)], "store")
    known, unknown = found["without_winner"]
    assert (known["problem"]["rows"], known["value_us"], known["baseline_us"]) == (1, 8.0, 12.0)
    assert (known["stage"], known["config"]["tile_n"]) == ("predicted", 64)
    assert (unknown["problem"]["rows"], unknown["value_us"], unknown["config"]) == (64, None, None)


def test_what_json_cannot_say_is_null() -> None:
    rows = [row(value_us=float("nan"), high_us=float("inf"), verification=verification(cases=()))]
    text = machine.dumps(outcome.session_object(result(*rows), MI300X, [], "store"))
    [winner] = json.loads(text)["winners"]
    assert (winner["value_us"], winner["high_us"]) == (None, None)
    assert winner["errors"] == {"cases": 0, "row_rms": None, "mean_abs": None, "max_abs": None}
