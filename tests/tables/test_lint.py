"""Rows that can be read and are of no use: each named with its reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m3gen.spec import Problem
from m3gen.tables.export import export, merged
from m3gen.tables.lint import Gravity, Remark, lint, lint_table
from m3gen.tables.table import Fallback, Table, config_id
from tests.tables.winners import finding, problem


def table(**changes: Any) -> Table:
    """One row of a real rank; `changes` are of its point."""
    of = problem(group_size=16, page_size=128, topk=16, context=2048)
    made = merged(None, [finding(of)])
    return replace(made, points=tuple(replace(point, **changes) for point in made.points)) if changes else made


def at(**changes: Any) -> Table:
    """The row moved to another problem."""
    made = table()
    return replace(made, points=(replace(made.points[0], problem=replace(made.points[0].problem, **changes)),))


def codes(of: Table) -> dict[str, Remark]:
    return {remark.code: remark for remark in lint_table(of, "gfx942/sparse_decode.json")}


def test_a_sound_table_gets_no_remark() -> None:
    assert lint_table(table(), "gfx942/sparse_decode.json") == []


def test_a_row_for_compute_units_that_no_device_has() -> None:
    remark = codes(at(compute_units=81))["never"]
    assert remark.gravity is Gravity.ERROR
    assert "no device of gfx942 has 81 compute units" in remark.words
    assert "MI300X 304" in remark.words
    assert remark.place == "gfx942/sparse_decode.json row 0"


def test_a_row_in_another_dialect_of_fp8() -> None:
    assert "the fp8 of gfx942 is e4m3fnuz" in codes(at(kv_dtype="e4m3fn", kv_scale="scalar"))["never"].words


def test_a_row_hidden_by_one_that_does_the_same_work() -> None:
    made = table()
    longer = replace(made.points[0], problem=replace(made.points[0].problem, context=8192))
    remark = codes(replace(made, points=(made.points[0], longer)))["shadowed"]
    assert "rows 1, context 2048" in remark.words


def test_a_second_fallback_with_one_key() -> None:
    made = table()
    assert "shadowed" in codes(replace(made, fallback=made.fallback * 2))


def test_a_config_outside_the_space() -> None:
    made = table()
    [(_, values)] = made.configs.items()
    strange = {**values, "num_warps": 3}
    name = config_id(strange)
    point = replace(made.points[0], config=name)
    fallback = tuple(Fallback(key=one.key, config=name) for one in made.fallback)
    found = codes(replace(made, configs={name: strange}, points=(point,), fallback=fallback))
    assert found["space"].gravity is Gravity.ERROR
    assert "num_warps" in found["space"].words


def test_a_row_of_another_text_is_stale() -> None:
    assert codes(table(source_sha="0" * 64))["stale"].gravity is Gravity.STALE


def test_templates_that_changed_without_changing_a_text_are_a_note() -> None:
    made = table()
    provenance = replace(made.provenance, templates={**made.provenance.templates, "module.py.jinja": "0" * 64})
    remark = codes(replace(made, provenance=provenance))["template"]
    assert remark.gravity is Gravity.NOTE
    assert "module.py.jinja changed since its export: 0 of 1 rows" in remark.words


def test_a_row_that_only_the_interpreter_ran() -> None:
    assert "wants machine-code" in codes(table(gate="interpreter"))["gate"].words


def test_a_shape_that_no_rank_has_is_a_note() -> None:
    assert codes(at(group_size=12))["foreign"].gravity is Gravity.NOTE


def test_a_variant_field_left_out() -> None:
    made = table()
    fields = tuple(name for name in made.variant_fields if name != "topk")
    assert "topk" in codes(replace(made, variant_fields=fields))["variant"].words


@pytest.mark.parametrize(("field", "code"), [("arch", "unknown-arch"), ("op", "unknown-op")])
def test_an_unknown_arch_or_op(field: str, code: str) -> None:
    made = replace(table(), **{field: "gfx1" if field == "arch" else "decode"})
    assert list(codes(made)) == [code]


def test_contexts_that_fewer_rows_do_not_reach() -> None:
    def of(rows: int, context: int) -> Problem:
        return problem(topk=64, rows=rows, context=context)

    made = merged(None, [finding(of(1, 1024)), finding(of(16, 2048))])
    assert "up to 1 rows end at a context of 1024" in codes(made)["hole"].words


def test_a_folder_with_a_damaged_table_and_an_old_manifest(tmp_path: Path) -> None:
    export([finding(problem())], tmp_path)
    other = tmp_path / "gfx942" / "dense_decode.json"
    other.write_text("{")
    found = {remark.code: remark for remark in lint(tmp_path)}
    assert "dense_decode.json" in found["unusable"].place
    assert "is not in the manifest" in found["manifest"].words
