"""Rows of another compiler, and rows checked as another text: put off, tried when asked, never dropped in silence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from m3gen import runtime
from m3gen.codegen.generate import generate
from m3gen.compiler.fingerprint import fingerprint
from m3gen.runtime import Rung
from m3gen.tables.files import replace_text
from m3gen.tables.findings import Finding
from m3gen.tables.load import load
from m3gen.tables.table import Table
from m3gen.tables.text import dumps
from m3gen.tables.validated import Kept, Verdict, dumps_verdicts, verdict_key
from tests.runtime.conftest import make
from tests.tables.winners import config, finding, problem

ELSEWHERE = "triton-3.6.0-0123456789ab"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with nothing but what a test puts there, and a site without tables."""
    monkeypatch.setenv("M3GEN_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("M3GEN_SITE", str(tmp_path / "site"))
    monkeypatch.delenv("M3GEN_TABLES", raising=False)
    (tmp_path / "site").mkdir()
    return tmp_path


def table(home: Path, found: Finding, **changes: str) -> Table:
    """One row in the tables of `home`, changed after its modules were made."""
    make(home, found)
    path = home / "tuning_db" / "gfx942" / "sparse_decode.json"
    old = load(path)
    new = replace(old, points=tuple(replace(point, **changes) for point in old.points))  # type: ignore[arg-type]
    replace_text(path, dumps(new))
    return new


def selected(**options: object) -> runtime.Selection:
    return runtime.load("gfx942", **options).sparse_decode.select(problem())  # type: ignore[arg-type]


FAST, SLOW = config(problem(), num_warps=1), config(problem(), num_warps=2)


def test_a_row_of_this_compiler_goes_before_a_faster_one_of_another(home: Path) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    table(home / "site", finding(problem(), 9.0, chosen=SLOW))
    selection = selected()
    assert (selection.rung, selection.config) == (Rung.SITE, SLOW.to_dict())
    served = "row for 1 rows, context 1024 and above, 1 us predicted by predict-amd-1"
    assert f"user table: {served}: demoted, of another compiler ({ELSEWHERE})" in selection.reason


def test_it_answers_before_any_fallback(home: Path) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    selection = selected()
    assert (selection.rung, selection.config) == (Rung.DEMOTED, FAST.to_dict())
    assert "nobody has compiled it here" in selection.reason


def test_a_row_that_was_checked_as_another_text_is_stale(home: Path) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), source_sha="0" * 64)
    table(home / "site", finding(problem(), 9.0, chosen=SLOW))
    selection = selected()
    assert selection.rung is Rung.SITE
    assert "demoted, stale: it was checked as an earlier text of its template" in selection.reason


def verdicts(home: Path, of: Table, kept: Kept, why: str = "") -> None:
    point = of.points[0]
    key = verdict_key(point.problem, point.config, point.source_sha, fingerprint())
    replace_text(home / "validated" / "gfx942.json", dumps_verdicts({key: Verdict(kept, why, "2026-05-01")}))


def test_one_that_was_validated_goes_before_one_that_nobody_has_tried(home: Path) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    sites = table(home / "site", finding(problem(), 9.0, chosen=SLOW), compiler=ELSEWHERE)
    verdicts(home / "site", sites, Kept.SAME)
    selection = selected()
    assert (selection.rung, selection.config) == (Rung.DEMOTED, SLOW.to_dict())
    assert "it compiles here with the same resources (validated 2026-05-01)" in selection.reason


def test_one_that_fails_here_is_passed_over_and_said(home: Path) -> None:
    users = table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    table(home / "site", finding(problem(), 9.0, chosen=SLOW), compiler=ELSEWHERE)
    verdicts(home / "user", users, Kept.FAILS, "shared: 70000 bytes per workgroup")
    selection = selected()
    assert (selection.rung, selection.config) == (Rung.DEMOTED, SLOW.to_dict())
    assert "of no use here (validated 2026-05-01: shared: 70000 bytes per workgroup)" in selection.reason


def test_a_verdict_is_of_one_compiler(home: Path) -> None:
    users = table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    point = users.points[0]
    key = verdict_key(point.problem, point.config, point.source_sha, "triton-3.8.0-0123456789ab")
    verdict = {key: Verdict(Kept.FAILS, "", "2026-05-01")}
    replace_text(home / "user" / "validated" / "gfx942.json", dumps_verdicts(verdict))
    assert selected().rung is Rung.DEMOTED


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": 2}', '{"format": 1, "verdicts": {"x": 1}}', "[" * 10000]
)
def test_damaged_verdicts_are_told_and_do_without(home: Path, content: str) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    path = home / "user" / "validated" / "gfx942.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.warns(RuntimeWarning, match="is not usable"):
        kernels = runtime.load("gfx942")
    assert str(path) in kernels.faults[0]
    assert kernels.sparse_decode.select(problem()).rung is Rung.DEMOTED


def test_what_explains_is_what_selects(home: Path) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), compiler=ELSEWHERE)
    kernels = runtime.load("gfx942").sparse_decode
    trace, selection = kernels.trace(problem()), kernels.select(problem())
    assert trace.answer is not None
    assert (trace.answer.rung, trace.answer.point) == (selection.rung, selection.point)
    assert trace.answer.module.__name__ == selection.module
    assert all(step.words in selection.reason for step in trace.steps)
    assert [step.taken for step in trace.steps] == [False] * (len(trace.steps) - 1) + [True]


def test_modules_of_an_earlier_m3gen_do_not_say_their_text(home: Path) -> None:
    table(home / "user", finding(problem(), 1.0, chosen=FAST), source_sha="0" * 64)
    index = home / "user" / "generated" / "gfx942" / "__init__.py"
    index.write_text(index.read_text().partition("\nSOURCES")[0])
    assert selected().rung is Rung.USER


def test_a_table_without_code_is_read_and_written_as_it_was(home: Path) -> None:
    made = table(home / "user", finding(problem()))
    text = dumps(made)
    assert "launches" not in text
    assert "code" not in json.loads(text)
    generate(made, home / "again")  # its header holds the table's sum
