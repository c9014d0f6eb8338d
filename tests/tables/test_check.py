"""What another compiler makes of rows: named by row and by what changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from m3gen.compiler.request import CompileResult
from m3gen.spec import Status
from m3gen.tables import check
from m3gen.tables.check import Asked
from m3gen.tables.export import merged
from m3gen.tables.findings import launch_code
from m3gen.tables.load import parse
from m3gen.tables.table import Table
from m3gen.tables.text import dumps
from m3gen.tables.validated import Kept
from tests.store.samples import facts
from tests.tables.winners import finding, fp8, problem

FACTS = facts()


def table(*, kept: bool = True) -> Table:
    found = [finding(problem()), finding(problem(rows=16)), finding(fp8())]
    if kept:
        found = [replace(one, launches=(launch_code(FACTS),)) for one in found]
    return merged(None, found)


def answer(one: Asked, **changes: Any) -> list[check.RowCheck]:
    now = replace(FACTS, **changes)
    source = one.points[0].source_sha
    keys = (("key",),) * len(one.points)
    return check.answered(one, CompileResult(status=Status.OK, keys=keys, facts={"key": now}, source_sha=source))


def test_one_compile_answers_rows_that_differ_in_their_load() -> None:
    asked = check.asked(table())
    assert sorted(len(one.points) for one in asked) == [1, 2]
    assert all(one.request is not None and one.request.op == "sparse_decode" for one in asked)


def test_kernels_are_kept_once_and_come_back() -> None:
    made = table()
    assert len(made.code) == 1
    assert parse(dumps(made).encode(), "again") == made


def test_the_same_is_the_same() -> None:
    [row] = answer(check.asked(table())[-1])
    assert (row.kept, row.why, row.stale, row.other_code) == (Kept.SAME, "", False, False)


def test_other_code_with_the_same_resources_is_the_same() -> None:
    [row] = answer(check.asked(table())[-1], code_sha="f" * 64)
    assert (row.kept, row.other_code) == (Kept.SAME, True)


@pytest.mark.parametrize(
    ("changes", "kept", "why"),
    [
        ({"registers": 128}, Kept.CHANGED, "registers 100 -> 128"),
        ({"shared_bytes": 0}, Kept.CHANGED, "shared_bytes 16384 -> 0"),
        ({"scalar_spills": 3}, Kept.CHANGED, "scalar_spills 0 -> 3"),
        ({"workgroups_per_cu": 1}, Kept.CHANGED, "workgroups_per_cu 2 -> 1"),
        ({"vector_spills": 1}, Kept.FAILS, "vector_spills 0 -> 1"),
        ({"scratch_bytes": 4, "registers": 90}, Kept.FAILS, "registers 100 -> 90, .*scratch_bytes 0 -> 4"),
        ({"kernel": "other"}, Kept.CHANGED, "launches sparse_decode_kernel -> other"),
    ],
)
def test_a_change_is_named(changes: dict[str, Any], kept: Kept, why: str) -> None:
    import re

    [row] = answer(check.asked(table())[-1], **changes)
    assert row.kept is kept
    assert re.search(why, row.why)


def test_fewer_spills_than_before_are_a_change_and_no_failure() -> None:
    before = replace(FACTS, vector_spills=4)
    found = merged(None, [replace(finding(problem()), launches=(launch_code(before),))])
    [row] = answer(check.asked(found)[0])
    assert row.kept is Kept.CHANGED


def test_a_row_that_kept_its_registers_alone() -> None:
    [one] = [one for one in check.asked(table(kept=False)) if len(one.points) == 1]
    assert [row.kept for row in answer(one, registers=128)] == [Kept.SAME]  # as `finding` says
    assert [row.why for row in answer(one, registers=100)] == ["registers 128 -> 100"]
    assert [row.kept for row in answer(one, registers=128, vector_spills=2)] == [Kept.FAILS]


def test_what_does_not_compile_fails_every_row_of_it() -> None:
    [one] = [one for one in check.asked(table()) if len(one.points) == 2]
    rows = check.answered(one, CompileResult(status=Status.RESOURCES, reason="shared: 70000 bytes"))
    assert [(row.kept, row.why) for row in rows] == [(Kept.FAILS, "resources: shared: 70000 bytes")] * 2


def test_a_config_outside_the_space_is_not_compiled() -> None:
    made = table()
    strange = {name: {**config, "num_warps": 3} for name, config in made.configs.items()}
    asked = check.asked(replace(made, configs=strange))
    assert all(one.request is None for one in asked)
    rows = [row for one in asked for row in check.answered(one, None)]
    assert len(rows) == 3
    assert all(row.kept is Kept.FAILS and "num_warps" in row.why for row in rows)


def test_another_text_of_the_template_is_stale() -> None:
    one = check.asked(table())[-1]
    keys = (("key",),) * len(one.points)
    result = CompileResult(status=Status.OK, keys=keys, facts={"key": FACTS}, source_sha="0" * 64)
    assert [row.stale for row in check.answered(one, result)] == [True] * len(one.points)


def test_of_rows_with_one_key_the_worst_counts() -> None:
    [one] = [one for one in check.asked(table()) if len(one.points) == 2]
    same, worse = answer(one)[0], answer(one, vector_spills=1)[1]
    [verdict] = check.verdicts([worse, same], "here", "2026-05-01").values()
    assert verdict.kept is Kept.FAILS


def test_words_of_a_compiler_are_made_fit_for_a_file() -> None:
    one = check.asked(table())[-1]
    rows = check.answered(one, CompileResult(status=Status.COMPILE, reason='"é" \n `x`' + "y" * 900))
    [verdict] = check.verdicts(rows, "here", "2026-05-01").values()
    assert len(verdict.why) == 500
    assert not set(verdict.why) & set('"é\n`')
