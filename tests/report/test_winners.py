"""Tables of winners, at the widths of common terminals."""

from __future__ import annotations

import pytest

from m3gen.report.winners import winners
from tests.report.rows import DEFAULT, TUNED, measured, printed, problem, row

WIDTHS = (80, 120)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_says_all_that_matters_of_a_winner(width: int) -> None:
    text = printed(winners([row(problem(rows=16))], "MI300X"), width)
    numbers = next(line for line in text.splitlines() if "1.50x" in line)
    assert numbers.split() == ["4", "bf16", "16", "12.0", "8.00", "1.50x", "memory", "128", "2", "4"]
    assert "sparse_decode on gfx942 (MI300X), context 2,048 and up" in text
    assert "predicted by predict-amd-1 (±35 %); gate: interpreter" in text
    assert "masked_loads=false, tile_n=64" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_the_widest_row_fits(width: int) -> None:
    wide = problem("gfx942", fp8=True, kv_scale="per_token_head", rows=512, group_size=4)
    figures = {"value_us": 9876.5, "baseline_us": 123456.7, "ratio": 12.5, "limit": "matrix"}
    text = printed(winners([row(wide, **figures)]), width)
    assert "…" not in text
    for cell in (
        "16",
        "e4m3fnuz",
        "9,876",
        "123,457",
        "12.50x",
        "matrix unit",
        "per-token KV scales",
    ):
        assert cell in text


def test_occupancy_is_told_in_the_vendors_terms() -> None:
    text = printed(winners([row(problem("sm_90"), limit="shared")]))
    for word in ("warps/", "SMSP", "blocks/", "SM", "shared mem"):
        assert word in text
    assert "SIMD" not in text


def test_predicted_and_measured_times_never_share_a_table() -> None:
    text = printed(winners([row(problem(rows=1)), measured(problem(rows=16)), row(problem(rows=64))]))
    headings = [line for line in text.splitlines() if line.startswith("times in us")]
    assert headings == [
        "times in us, measured; gate: interpreter",
        "times in us, predicted by predict-amd-1 (±35 %); gate: interpreter",
    ]


def test_rows_come_in_the_order_of_their_problems() -> None:
    text = printed(winners([row(problem(rows=rows)) for rows in (256, 1, 16)]))
    assert [line.split()[2] for line in text.splitlines() if "1.50x" in line] == ["1", "16", "256"]


def test_loads_won_by_one_config_share_a_line() -> None:
    loads = [row(problem(rows=1)), row(problem(rows=16)), row(problem(rows=64), config=DEFAULT)]
    lines = printed(winners(loads)).splitlines()
    assert [line.split() for line in lines if "tile_n" in line] == [
        ["4", "bf16", "1,16", "masked_loads=false,", "tile_n=64"]
    ]
    assert any(line.split()[2:] == ["64", "as", "the", "field"] for line in lines)


def test_a_default_that_failed_leaves_a_gap_and_no_ratio() -> None:
    text = printed(winners([row(baseline_us=None, ratio=None)]))
    numbers = next(line for line in text.splitlines() if "memory" in line)
    assert numbers.split()[3:6] == ["-", "8.00", "-"]


def test_brackets_in_values_are_text_and_not_markup() -> None:
    assert "[red]" in printed(winners([row(limit="[red]", config=TUNED)]))
