"""What goes into a table, and what of two findings stays."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m3gen.errors import UserError
from m3gen.evaluate.evaluation import Stage
from m3gen.spec import Problem, Status
from m3gen.tables.export import export, merged
from m3gen.tables.load import load
from m3gen.tables.manifest import manifest_faults
from m3gen.tables.table import Point, PointStatus, config_id
from m3gen.tables.text import dumps
from tests.tables.winners import config, finding, fp8, problem, stale

MEASURED: dict[str, Any] = {"stage": Stage.MEASURED, "judge": "measure-1"}


def only(points: tuple[Point, ...]) -> Point:
    (point,) = points
    return point


def exported(root: Path, *found: object) -> bytes:
    (path,) = export(found, root)  # type: ignore[arg-type]
    return path.read_bytes()


def test_a_point_says_what_was_found(tmp_path: Path) -> None:
    found = finding(problem(), 12.34567891, baseline_us=20.0)
    (path,) = export([found], tmp_path)
    assert path == tmp_path / "gfx942" / "sparse_decode.json"
    point = only(load(path).points)
    winner = found.winner
    assert (point.problem, point.config) == (problem(), winner.config.sha[:12])
    assert (point.us, point.low_us, point.high_us, point.baseline_us) == (12.3457, 11.1111, 14.8148, 20.0)
    assert (point.status, point.judge, point.gate) == (PointStatus.PREDICTED, "predict-amd-1", "machine-code")
    assert (point.limit, point.registers, point.compiler) == ("memory", 128, finding(problem()).winner.compiler)
    assert point.source_sha == winner.verification.source_sha
    assert load(path).configs[point.config] == winner.config.to_dict()


def test_the_same_findings_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    found = [finding(problem(rows=rows), float(rows)) for rows in (1, 16, 64)] + [finding(fp8())]
    texts = {
        exported(tmp_path / str(number), *order) for number, order in enumerate(itertools.permutations(found))
    }
    assert len(texts) == 1


def test_exporting_again_writes_nothing(tmp_path: Path) -> None:
    (path,) = export([finding(problem())], tmp_path)
    before = (path.stat().st_mtime_ns, path.stat().st_ino)
    export([finding(problem())], tmp_path)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_the_date_is_that_of_the_newest_evidence(tmp_path: Path) -> None:
    old, new = (
        finding(problem(), day="2026-01-05T00:00:00+00:00"),
        finding(fp8(), day="2026-02-07T23:00:00+00:00"),
    )
    assert merged(None, [old, new]).provenance.date == "2026-02-07"
    assert merged(merged(None, [new]), [old]).provenance.date == "2026-02-07"


def test_evidence_changes_with_what_was_found_and_with_nothing_else() -> None:
    one = only(merged(None, [finding(problem(), 3.0)]).points)
    again = only(merged(None, [finding(problem(), 3.0, day="2027-01-01")]).points)
    other = only(merged(None, [finding(problem(), 3.00001)]).points)
    assert one.evidence == again.evidence != other.evidence
    assert one.us == other.us


def test_points_of_other_problems_stay() -> None:
    table = merged(merged(None, [finding(problem())]), [finding(fp8()), finding(problem(rows=16))])
    assert {point.problem for point in table.points} == {problem(), fp8(), problem(rows=16)}


def test_a_prediction_never_displaces_a_measurement() -> None:
    measured = merged(None, [finding(problem(), 30.0, **MEASURED)])
    kept = only(merged(measured, [finding(problem(), 1.0)]).points)
    assert (kept.us, kept.status) == (30.0, PointStatus.MEASURED)


@pytest.mark.parametrize("first", [0, 1])
def test_nor_within_one_export(first: int) -> None:
    pair = [finding(problem(), 30.0, **MEASURED), finding(problem(), 1.0)]
    assert only(merged(None, [pair[first], pair[1 - first]]).points).us == 30.0


def test_a_measurement_displaces_a_prediction() -> None:
    table = merged(merged(None, [finding(problem(), 1.0)]), [finding(problem(), 30.0, **MEASURED)])
    assert only(table.points).us == 30.0


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("predict-amd-1", "predict-amd-1", "new"),
        ("predict-amd-1", "predict-amd-2", "new"),
        ("predict-amd-10", "predict-amd-9", "old"),
        ("predict-amd-10", "replay-1", "new"),
    ],
)
def test_a_newer_prediction_displaces_an_older_one(old: str, new: str, stays: str) -> None:
    table = merged(None, [finding(problem(), 10.0, judge=old)])
    assert (
        only(merged(table, [finding(problem(), 20.0, judge=new)]).points).us == {"old": 10.0, "new": 20.0}[stays]
    )


def test_a_config_that_no_point_uses_any_more_goes() -> None:
    first, second = config(problem()), config(problem(), num_warps=1)
    table = merged(None, [finding(problem(), chosen=first)])
    table = merged(table, [finding(problem(), chosen=second)])
    assert list(table.configs) == [second.sha[:12]]


def test_loads_that_the_op_cannot_tell_apart_are_one_point() -> None:
    far, near = problem(context=1 << 20), problem(context=1024)
    table = merged(None, [finding(far, 9.0), finding(near, 8.0)])
    point = only(table.points)
    assert (point.problem, point.us, point.open_ended) == (near, 8.0, ("context",))


def test_a_context_below_where_the_work_stops_growing_serves_nothing_larger() -> None:
    long_lists = problem(topk=64)  # 64 pages of 32 tokens: up to 2048
    table = merged(None, [finding(replace(long_lists, context=context)) for context in (1024, 2048)])
    assert [(p.problem.context, p.open_ended) for p in table.points] == [(1024, ()), (2048, ("context",))]


# What is refused


def test_a_winner_that_failed_the_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has not passed the correctness gate"):
        export([finding(problem()), finding(fp8(), status=Status.CORRECTNESS)], tmp_path)
    assert not any(tmp_path.rglob("*.json"))


def test_a_winner_for_amd_that_only_the_interpreter_ran_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"interpreter only: run `m3gen verify --arch gfx942 --on machine-code`"):
        export([finding(problem()), finding(fp8(), on="interpreter")], tmp_path)
    assert not any(tmp_path.rglob("*.json"))


def test_the_interpreter_is_enough_where_no_machine_code_can_be_run(tmp_path: Path) -> None:
    other = problem(arch="sm_90", compute_units=132)
    (path,) = export([finding(other, on="interpreter")], tmp_path)
    assert only(load(path).points).gate == "interpreter"


def test_a_gpu_is_more_than_machine_code(tmp_path: Path) -> None:
    (path,) = export([finding(problem(), on="gpu")], tmp_path)
    assert only(load(path).points).gate == "gpu"


def test_a_winner_that_was_run_as_the_code_of_another_compiler_is_refused(tmp_path: Path) -> None:
    found = finding(problem())
    later = replace(found.winner.verification, environment={"compiler": "triton-3.10.0-4567"})
    with pytest.raises(UserError, match=r"code of triton-3\.10\.0-4567, its time is that of triton-3\."):
        export([replace(found, winner=replace(found.winner, verification=later))], tmp_path)


def test_a_winner_whose_text_changed_since_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="checked as another text"):
        export([stale(finding(problem()))], tmp_path)


def test_a_config_outside_the_space_is_refused(tmp_path: Path) -> None:
    outside = config(problem(), tile_n=16, num_warps=8)
    with pytest.raises(UserError, match="load_width"):
        export([finding(problem(), chosen=outside)], tmp_path)


def test_a_table_that_cannot_be_read_is_not_overwritten(tmp_path: Path) -> None:
    (path,) = export([finding(problem())], tmp_path)
    path.write_text(path.read_text().replace('"us"', '"time"'))
    damaged = path.read_text()
    with pytest.raises(UserError, match="is not usable"):
        export([finding(fp8())], tmp_path)
    assert path.read_text() == damaged


def test_a_point_whose_config_left_the_space_is_left_out_aloud() -> None:
    table = merged(None, [finding(problem()), finding(problem(rows=16))])
    gone = {"num_warps": 4, "sorcery": True}
    point = replace(table.points[0], config=config_id(gone))
    table = replace(table, points=(point, table.points[1]), configs={**table.configs, config_id(gone): gone})
    with pytest.warns(RuntimeWarning, match=r"1 of the 2 points of gfx942/sparse_decode\.json"):
        grown = merged(table, [finding(fp8())])
    assert {p.problem for p in grown.points} == {problem(rows=16), fp8()}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "tuning_db").write_text("a file")
    with pytest.raises(UserError, match="cannot write to"):
        export([finding(problem())], tmp_path / "tuning_db")


# Fallbacks


def test_the_fallback_is_the_config_that_does_best_over_the_variants_points() -> None:
    few, many = config(problem(), num_warps=1), config(problem())
    found = [
        replace(finding(problem(rows=1), 2.0, chosen=few), others={many: 4.0}),
        replace(finding(problem(rows=16), 8.0, chosen=many), others={few: 32.0}),
    ]
    table = merged(None, found)  # few: 20/2 * 20/32 = 6.25; many: 20/4 * 20/8 = 12.5
    (fallback,) = table.fallback
    assert fallback.config == many.sha[:12]
    others_known = [replace(found[0], others={many: 40.0}), found[1]]  # many: 20/40 * 20/8 = 1.25
    assert merged(None, others_known).fallback[0].config == few.sha[:12]


def test_a_config_known_on_more_points_goes_before_one_that_shines_on_few() -> None:
    few, many = config(problem(), num_warps=1), config(problem())
    found = [finding(problem(rows=rows), 19.0, chosen=many) for rows in (1, 2)]
    found.append(finding(problem(rows=4), 1.0, chosen=few))
    assert merged(None, found).fallback[0].config == many.sha[:12]


def test_every_variant_has_a_fallback_of_its_own() -> None:
    table = merged(None, [finding(problem()), finding(problem(rows=16)), finding(fp8())])
    assert [f.key["kv_dtype"] for f in table.fallback] == ["bf16", "e4m3fnuz"]
    for fallback in table.fallback:
        assert set(table.variant_fields) <= set(fallback.key)


def test_a_fallback_holds_for_the_query_length_it_was_tuned_for() -> None:
    # rows_packed must divide the query length: elsewhere the config would skip rows.
    packed = problem(query_len=4, rows=16)
    table = merged(None, [finding(packed, chosen=config(packed, rows_packed=4))])
    assert table.fallback[0].key["query_len"] == 4
    assert "compute_units" not in table.fallback[0].key


# The folder


def test_the_manifest_agrees_with_the_tables(tmp_path: Path) -> None:
    other = Problem(**{**problem().to_dict(), "arch": "gfx950", "compute_units": 256})
    paths = export([finding(problem()), finding(other)], tmp_path)
    assert [path.parent.name for path in paths] == ["gfx942", "gfx950"]
    assert manifest_faults(tmp_path) == []
    paths[0].write_text(dumps(merged(None, [finding(fp8())])))
    (fault,) = manifest_faults(tmp_path)
    assert "gfx942/sparse_decode.json is not the file" in fault


def test_nothing_but_tables_and_manifest_is_left(tmp_path: Path) -> None:
    export([finding(problem())], tmp_path)
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["gfx942/sparse_decode.json", "manifest.json"]
