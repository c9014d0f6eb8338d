"""What the gate found out."""

from __future__ import annotations

from m3gen.ops.base import Tolerance
from m3gen.report import verdicts
from m3gen.spec import Status
from tests.report.rows import TUNED, printed, problem, verification


def bounds(grid: str) -> Tolerance:
    return Tolerance(row_rms=4e-3, max_abs=1.7e-2 if grid == "peers" else None)


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
    assert found["bounds"] == {"row_rms": 4e-3, "mean_abs": None, "max_abs": None}
