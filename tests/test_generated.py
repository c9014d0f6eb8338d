"""What ships agrees with itself: tables with their manifest, generated modules with their tables and templates."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import m3gen
from m3gen.codegen.generate import generate
from m3gen.evaluate.place import suffices
from m3gen.tables.lint import Gravity, lint
from m3gen.tables.load import load
from m3gen.tables.manifest import manifest_faults

ROOT = Path(m3gen.__file__).parents[1]
TABLES = sorted((ROOT / "tuning_db").glob("*/*.json"))
MODULES = sorted((ROOT / "generated").glob("*/*.py"))

pytestmark = pytest.mark.skipif(not TABLES, reason="no table ships yet")


def files(folder: Path) -> dict[str, bytes]:
    """Every file of every architecture, bytecode aside."""
    found = (path for path in folder.glob("*/**/*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_the_manifest_names_every_table_by_its_sum() -> None:
    assert manifest_faults(ROOT / "tuning_db") == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_every_point_has_passed_the_last_gate_of_its_arch(table: Path) -> None:
    found = load(table)
    assert [point for point in found.points if not suffices(point.gate, found.arch)] == []


def test_no_row_that_ships_is_of_no_use() -> None:
    """None can never match, is hidden, is outside of its op's space or was checked as another text."""
    assert [remark for remark in lint(ROOT / "tuning_db") if remark.gravity is not Gravity.NOTE] == []


def test_generated_modules_are_what_the_tables_and_templates_make(tmp_path: Path) -> None:
    for table in TABLES:
        generate(load(table), tmp_path)
    made, shipped = files(tmp_path), files(ROOT / "generated")
    assert sorted(made) == sorted(shipped)
    assert [name for name in made if made[name] != shipped[name]] == [], "run `m3gen generate` for these"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_a_module_imports_and_was_checked_as_it_is(module: Path) -> None:
    found = importlib.import_module(
        f"m3gen.generated.{module.parent.name}.{module.stem}".removesuffix(".__init__")
    )
    if module.stem == "__init__":
        assert set(found.MODULES) == {table.stem for table in TABLES if table.parent.name == module.parent.name}
        return
    op, _, key = module.stem.rpartition("_")
    assert callable(getattr(found, op))
    assert callable(found.workspace)
    index = importlib.import_module(f"m3gen.generated.{module.parent.name}").MODULES
    assert index[op][key] == module.stem
    assert "STALE" not in (found.__doc__ or ""), "the template has changed since the gate: tune again"
