"""Tables into tables, and the difference between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from m3gen.errors import UserError
from m3gen.evaluate.evaluation import Stage
from m3gen.tables.diff import compare
from m3gen.tables.export import export, merged
from m3gen.tables.findings import Finding
from m3gen.tables.load import load
from m3gen.tables.manifest import manifest_faults
from m3gen.tables.table import Table
from m3gen.tables.text import dumps
from m3gen.tables.union import Prefer, merge_folders, union
from tests.tables.winners import config, finding, fp8, problem

MEASURED: dict[str, Any] = {"stage": Stage.MEASURED, "judge": "measure-1", "on": "gpu"}
FAST, SLOW = config(problem(), num_warps=1), config(problem(), num_warps=2)


def one(*args: Any, **changes: Any) -> Table:
    return merged(None, [finding(*args, **changes)])


def times(table: Table) -> list[float]:
    return [point.us for point in table.points]


def test_a_measured_row_is_never_displaced_by_a_predicted_one() -> None:
    measured, predicted = one(problem(), 30.0, **MEASURED), one(problem(), 1.0, chosen=FAST)
    assert times(union(measured, predicted).table) == [30.0]
    assert times(union(predicted, measured).table) == [30.0]


@pytest.mark.parametrize("first", [True, False])
def test_of_two_judged_alike_the_faster(first: bool) -> None:
    pair = one(problem(), 5.0, chosen=FAST), one(problem(), 4.0, chosen=SLOW)
    made = union(*(pair if first else pair[::-1]))
    assert times(made.table) == [4.0]
    assert (made.added, made.displaced, made.kept) == (0, int(first), int(not first))


def test_a_newer_version_of_a_judge() -> None:
    older, newer = one(problem(), 1.0, judge="predict-amd-9"), one(problem(), 3.0, judge="predict-amd-10")
    assert times(union(older, newer).table) == times(union(newer, older).table) == [3.0]


def test_judges_that_do_not_compare_are_a_conflict_by_name() -> None:
    ours, theirs = one(problem(), 3.0, chosen=FAST), one(problem(), 2.0, chosen=SLOW, judge="replay-1")
    made = union(ours, theirs)
    [conflict] = made.conflicts
    assert conflict.problem == problem()
    assert "predicted by replay-1 and by predict-amd-1" in conflict.reason
    assert times(made.table) == [3.0]
    assert times(union(ours, theirs, Prefer.NEW).table) == [2.0]


def test_rows_of_other_problems_come_in_with_their_configs() -> None:
    made = union(one(problem(), chosen=FAST), one(fp8()))
    assert made.added == 1
    assert {point.config for point in made.table.points} == set(made.table.configs)


def test_merging_folders(tmp_path: Path) -> None:
    into, other = tmp_path / "into", tmp_path / "other"
    export([finding(problem(), 3.0)], into)
    export([finding(problem(), 2.0), finding(problem(rows=16))], other)
    merge_folders(into, [other], Prefer.NEITHER)
    assert times(load(into / "gfx942" / "sparse_decode.json")) == [2.0, 10.0]
    assert manifest_faults(into) == []
    before = (into / "gfx942" / "sparse_decode.json").stat()
    merge_folders(into, [other], Prefer.NEITHER)
    assert (into / "gfx942" / "sparse_decode.json").stat().st_mtime_ns == before.st_mtime_ns


def test_a_conflict_writes_nothing(tmp_path: Path) -> None:
    into, other = tmp_path / "into", tmp_path / "other"
    export([finding(problem(), 3.0, chosen=FAST)], into)
    theirs = [finding(problem(), 2.0, chosen=SLOW, judge="replay-1"), finding(problem(rows=16))]
    export(theirs, other)
    path = into / "gfx942" / "sparse_decode.json"
    before = path.read_bytes()
    merge_folders(into, [other], Prefer.NEITHER)
    assert path.read_bytes() == before
    merge_folders(into, [other], Prefer.OLD)
    assert times(load(path)) == [3.0, 10.0]


def test_two_winners_of_one_export_that_contradict_each_other() -> None:
    pair: list[Finding] = [
        finding(problem(), 3.0, chosen=FAST),
        finding(problem(), 2.0, chosen=SLOW, judge="replay-1"),
    ]
    with pytest.raises(UserError, match="contradict each other"):
        merged(None, pair)


# Differences


def folder(tmp_path: Path, name: str, *found: Finding) -> Path:
    export(found, tmp_path / name)
    return tmp_path / name


def test_a_difference_names_old_new_ratio_and_settings(tmp_path: Path) -> None:
    old = folder(tmp_path, "old", finding(problem(), 8.0, chosen=FAST), finding(fp8()), finding(problem(rows=16)))
    new = folder(tmp_path, "new", finding(problem(), 4.0, chosen=SLOW), finding(fp8()), finding(problem(rows=64)))
    found = compare(old, new)
    assert found.same == 1
    changed = {change.problem.rows: change for change in found.changes}
    assert changed[1].ratio == 2.0
    assert changed[1].settings == (("num_warps", 1, 2),)
    assert changed[16].new is None
    assert changed[64].old is None


def test_times_of_two_judges_have_no_ratio(tmp_path: Path) -> None:
    old = folder(tmp_path, "old", finding(problem(), 8.0))
    new = folder(tmp_path, "new", finding(problem(), 4.0, judge="predict-amd-2"))
    [change] = compare(old / "gfx942" / "sparse_decode.json", new / "gfx942" / "sparse_decode.json").changes
    assert change.ratio is None


def test_tables_that_are_equal_do_not_differ(tmp_path: Path) -> None:
    old = folder(tmp_path, "old", finding(problem()))
    assert compare(old, old).changes == ()
    assert (
        dumps(load(old / "gfx942" / "sparse_decode.json")) == (old / "gfx942" / "sparse_decode.json").read_text()
    )


def test_a_folder_without_tables(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no table at"):
        compare(tmp_path, tmp_path)
