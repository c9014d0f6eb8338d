"""`m3gen generate` with a fake generator, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.cli import work
from tests.cli.conftest import Run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path, Path]]:
    calls: list[tuple[str, Path, Path]] = []

    def generate(arch: str, tables_dir: Path, modules_dir: Path) -> tuple[Path, ...]:
        calls.append((arch, tables_dir, modules_dir))
        return (modules_dir / arch / "a.py", modules_dir / arch / "b.py")

    monkeypatch.setattr(work, "generate", generate)
    return calls


def test_it_prints_a_path_a_line(run: Run, asked: list[tuple[str, Path, Path]], tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    ran = run("generate", "--arch", "sm90", "--tables", tmp_path / "tables", "--out", tmp_path / "out")
    assert asked == [("sm_90", tmp_path / "tables", tmp_path / "out")]
    assert ran.out == f"{tmp_path}/out/sm_90/a.py\n{tmp_path}/out/sm_90/b.py\n"
    assert ran.status == 0


def test_the_users_own_folders_by_default(run: Run, asked: list[tuple[str, Path, Path]], home: Path) -> None:
    (home / "tuning_db").mkdir(parents=True)
    found = run("generate", "--arch", "gfx942", "--json").object
    assert asked == [("gfx942", home / "tuning_db", home / "generated")]
    assert found["modules"] == [str(home / "generated/gfx942/a.py"), str(home / "generated/gfx942/b.py")]


def test_no_folder_of_tables(run: Run, tmp_path: Path) -> None:
    line = run("generate", "--arch", "gfx942", "--tables", tmp_path / "none").line
    assert f"no folder of tables at {tmp_path}/none" in line
    assert "m3gen tune" in line


def test_no_table_of_the_architecture(run: Run, tmp_path: Path) -> None:
    line = run("generate", "--arch", "gfx942", "--tables", tmp_path, "--out", tmp_path / "out").line
    assert f"no table of gfx942 in {tmp_path}" in line


def test_a_damaged_table_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gfx942").mkdir()
    (tmp_path / "gfx942/sparse_decode.json").write_text("{}")
    line = run("generate", "--arch", "gfx942", "--tables", tmp_path, "--out", tmp_path / "out").line
    assert "gfx942/sparse_decode.json" in line
    assert not (tmp_path / "out/gfx942").exists()


def test_an_unwritable_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = run("generate", "--arch", "gfx942", "--tables", tmp_path, "--out", tmp_path / "file/out").line
    assert f"cannot write to {tmp_path}/file/out" in line
