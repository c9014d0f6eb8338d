"""What the gate found out."""

from __future__ import annotations

from typing import Any

from m3gen.evaluate.verification import CaseResult
from m3gen.ops.base import Tolerance
from m3gen.report import verdicts
from m3gen.spec import Status
from tests import problems
from tests.report.rows import TUNED, printed, problem, verification


def bounds(grid: str) -> Tolerance:
    return Tolerance(row_rms=4e-3, max_abs=1.7e-2 if grid == "peers" else None)


def case(name: str = "lengths", **changes: Any) -> CaseResult:
    values = {"grid": "awkward", "status": Status.OK, "row_rms": 1e-3, "mean_abs": 2e-5, "max_abs": 0.125}
    return CaseResult(name=name, **{**values, **changes})


def test_each_error_stands_against_its_bound() -> None:
    text = printed(verdicts.verdict(problem(), TUNED, verification(), bounds))
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert lines["padding"] == ["1.0e-03", "/", "4.0e-03", "2.0e-05", "1.2e-01", "ok"]
    assert lines["peers"] == ["2.0e-03", "/", "4.0e-03", "1.0e-05", "5.0e-01", "/", "1.7e-02", "ok"]
    assert "passed 2 cases on the interpreter in 12 s" in text


def test_a_failure_says_what_and_why() -> None:
    found = verification(Status.CORRECTNESS, reason="row 3 is off")
    text = printed(verdicts.verdict(problem(), TUNED, found, bounds))
    assert "FAILED on the interpreter: wrong result: row 3 is off" in text
    assert any(line.startswith("peers") and line.rstrip().endswith("wrong result") for line in text.splitlines())


def test_a_case_as_data_holds_errors_and_bounds() -> None:
    found = verdicts.case_object(verification().cases[0], bounds)
    assert found["row_rms"] == 1e-3
    assert found["bounds"] == {"row_rms": 4e-3, "mean_abs": None, "max_abs": None, "past_rounding": None}
    assert found["worst"] == {"kind": "row_rms", "error": 1e-3, "bound": 4e-3}


def test_the_worst_error_is_the_one_nearest_to_its_bound() -> None:
    tight_mean = Tolerance(row_rms=4e-3, mean_abs=1e-5, max_abs=10.0)
    assert str(verdicts.worst(case(), tight_mean)) == "mean 2.0e-05 of 1.0e-05"
    rounding = Tolerance(row_rms=1.0, past_rounding=2.0**-18)
    assert str(verdicts.worst(case(past_rounding=1e-6), rounding)) == "past rounding 1.0e-06 of 3.8e-06"
    assert verdicts.worst(case(), Tolerance(past_rounding=2.0**-18)) is None  # a row of an older store
    assert verdicts.worst(case(), Tolerance()) is None


def test_a_group_is_a_line_a_case_with_the_worst_of_its_seeds() -> None:
    cases = (case("lengths", row_rms=1e-3), case("tile edges"), case("lengths", row_rms=2e-3), case("tile edges"))
    text = printed(verdicts.group(problem(), verification(cases=cases), bounds), width=120)
    assert text.splitlines() == [
        "sparse_decode on gfx942, TP 4, KV bf16, query length 1, 1 row, context 2,048 and up",
        "sparse_decode  bf16  lengths     ok  row rms 2.0e-03 of 4.0e-03",
        "sparse_decode  bf16  tile edges  ok  row rms 1.0e-03 of 4.0e-03",
        "",
    ]
    exact = verdicts.group(problem(), verification(cases=cases), lambda grid: Tolerance())
    assert "sparse_decode  bf16  lengths     ok  exact" in printed(exact)


def test_a_group_names_the_case_that_failed_or_why_there_is_none() -> None:
    cases = (case("lengths"), case("peers", status=Status.CORRECTNESS, reason="row 3 is off"))
    found = verification(Status.CORRECTNESS, cases=cases, reason="case 'peers', seed 0: row 3 is off")
    lines = printed(verdicts.group(problem(), found, bounds), width=120).splitlines()
    assert "sparse_decode  bf16  peers    FAILED  wrong result: row 3 is off" in lines
    assert sum("FAILED" in line for line in lines) == 1
    died = verification(Status.TIMEOUT, cases=(), reason="killed after 600 s")
    lines = printed(verdicts.group(problem(), died, bounds), width=120).splitlines()
    assert "sparse_decode  bf16  FAILED  ran past its deadline: killed after 600 s" in lines


def test_the_tally_counts_ops_problems_and_cases() -> None:
    passed = [(problem(), verification()), (problem(rows=16), verification())]
    assert verdicts.tally(passed, 75.0).plain == (
        "1 op, 2 problems, 4 cases, all passed; gate: interpreter; 1 min 15 s"
    )
    failed = [*passed, (problems.dense_decode()[0], verification(Status.RUNTIME))]
    assert verdicts.tally(failed, 75.0).plain.startswith("2 ops, 3 problems, 6 cases, 1 problem FAILED; gate")
