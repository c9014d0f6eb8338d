from __future__ import annotations

from m3gen.report import portfolio as pictures
from m3gen.search.portfolio import Portfolio, portfolio
from tests.report.rows import DEFAULT, TUNED, printed, problem

FOUND = portfolio(
    {
        problem(rows=1): {TUNED: 8.0, DEFAULT: 12.0},
        problem(rows=16): {TUNED: 10.0},
        problem(rows=64): {TUNED: 30.0, DEFAULT: 20.0},
        problem(rows=256): {},
    },
    most=1,
)


def test_the_table_fits_and_names_members_regrets_and_what_is_not_served():
    text = printed(pictures.portfolio(FOUND, "sparse_decode on gfx942"))
    assert "TP 4 bf16 rows 1,16,64" in text.replace("\n", " ")
    assert "1.50x" in text
    assert "not served: sparse_decode TP 4 bf16 rows 256" in text
    assert "1 configuration for 3 problems: worst regret 1.500, geometric mean 1.145" in text


def test_the_object_has_the_same():
    found = pictures.portfolio_object(FOUND)
    [member] = found["members"]
    assert (found["worst_regret"], round(found["geometric_mean_regret"], 3)) == (1.5, 1.145)
    assert member["config"] == TUNED.to_dict()
    assert [(one["problem"]["rows"], one["regret"]) for one in member["serves"]] == [
        (1, 1.0),
        (16, 1.0),
        (64, 1.5),
    ]
    assert [one["rows"] for one in found["unserved"]] == [256]


def test_nothing_known():
    assert "no time is known" in printed(pictures.portfolio(Portfolio((), {}, ()), "sparse_decode on gfx942"))
