"""A wheel built from the checkout works where there is no checkout, and nothing is missing from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import m3gen
from m3gen.targets import ARCHITECTURES, DEVICES

ROOT = Path(m3gen.__file__).parents[1]
SETUPTOOLS = 77  # the first that reads this pyproject.toml
INSIDE = {"templates": "m3gen/templates", "tuning_db": "m3gen/tuning_db", "generated": "m3gen/generated"}
NEW_ARCH = "gfx1"  # generated modules of an architecture that pyproject.toml knows nothing of
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def project() -> dict[str, list[str]]:
    """The packages that pyproject.toml lists."""
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    return found


def sources(folder: Path) -> set[str]:
    """Every file below a folder that belongs to the project, relative to it."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        file.as_posix()
        for file in files
        if not any(part == "__pycache__" or part.startswith(".") for part in file.parts)
    }


def run(*command: object, cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "M3GEN_"))}
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that the checkout stays clean."""
    copy = tmp_path_factory.mktemp("source")
    for folder in ("m3gen", *INSIDE):
        shutil.copytree(ROOT / folder, copy / folder, ignore=LEFT_OUT)
    new = copy / "generated" / NEW_ARCH
    new.mkdir()
    for name in ("__init__.py", "module.py"):
        (new / name).write_text("")
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, copy)
    # Without a fit setuptools here, build fetches one.
    isolation = ["--no-isolation"] if _setuptools() >= SETUPTOOLS else []
    run(sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", copy / "dist", copy, cwd=copy)
    [built] = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of scripts of a new environment with the wheel; its dependencies are those of this one."""
    home = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=home)
    [site] = home.glob("lib/python3*/site-packages")
    # Paths named in a .pth file come after the environment's own, and .pth files in them do not count: an
    # editable m3gen of this environment stays out of sight.
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    return home / "bin"


def test_every_package_is_listed() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "m3gen").rglob("*.py")}
    inside = {name.replace("/", ".") for name in INSIDE.values()}
    assert sorted({".".join(folder.parts) for folder in folders} | inside) == sorted(project()["packages"])


def test_no_module_is_missing(names: set[str]) -> None:
    assert {f"m3gen/{name}" for name in sources(ROOT / "m3gen")} <= names


@pytest.mark.parametrize("folder", list(INSIDE))
def test_the_folders_beside_the_package_lie_inside_it(names: set[str], folder: str) -> None:
    found = sources(ROOT / folder)
    assert found
    assert {f"{INSIDE[folder]}/{name}" for name in found} <= names


def test_generated_modules_of_any_architecture_are_there(names: set[str]) -> None:
    folder = f"m3gen/generated/{NEW_ARCH}"
    assert {f"{folder}/__init__.py", f"{folder}/module.py"} <= names


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "templates/sparse_decode.py.jinja",
        "templates/macros/tiles.jinja",
        "store/migrations/versions/first_0001.py",
        "tables/schema.json",
        "evaluate/points/mi300x_block_score.json",
    ],
)
def test_what_is_not_imported_by_name_is_there(names: set[str], name: str) -> None:
    assert f"m3gen/{name}" in names


def test_the_command_runs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    found = json.loads(run(installed / "m3gen", "targets", "--json", cwd=tmp_path))
    assert [one["name"] for one in found["devices"]] == list(DEVICES)


def test_the_installed_package_finds_its_parts(installed: Path, tmp_path: Path) -> None:
    script = (
        "import m3gen, m3gen.templates, m3gen.tuning_db, m3gen.generated\n"
        "from m3gen import ops, paths, store\n"
        "from m3gen.codegen.render import template_shas\n"
        "assert paths.checkout() is None\n"
        "assert all(template_shas(ops.get(name).template) for name in ops.names())\n"
        "store.Store.open(paths.store_url()).close()\n"
        "print(m3gen.__file__, paths.tables_dir(), paths.generated_dir())"
    )
    home = tmp_path / "home"
    output = run(installed / "python", "-c", script, cwd=tmp_path, M3GEN_HOME=str(home))
    package, tables, modules = output.split()
    assert Path(package).is_relative_to(installed.parent)
    assert (Path(tables), Path(modules)) == (home / "tuning_db", home / "generated")
    assert (home / "m3gen.db").is_file()


ASK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
BLOCKED = ("sqlalchemy", "alembic", "optuna", "jinja2", "typer", "rich", "platformdirs", "numpy")
sys.meta_path.insert(0, Blocker())
from m3gen import runtime
for arch in sys.argv[1:]:
    kernels = runtime.load(arch)
    rungs = {
        str(kernels[op].select(point.problem).rung)
        for op in kernels
        for shelf in kernels[op]._shelves
        for point in shelf.table.points
    }
    print(arch, len(kernels) > 0, *sorted(rungs), *kernels.faults)
print(*sorted({name.split(".")[0] for name in sys.modules} & set(BLOCKED)))
"""


def test_the_runtime_answers_for_every_architecture_with_torch_and_triton_alone(
    installed: Path, tmp_path: Path
) -> None:
    """What is not torch's or Triton's own is out of reach, as where nothing else is installed."""
    home = str(tmp_path / "home")
    output = run(
        installed / "python", "-c", ASK, *ARCHITECTURES, cwd=tmp_path, M3GEN_HOME=home, M3GEN_SITE=str(tmp_path)
    )
    assert output.splitlines() == [*(f"{arch} True release" for arch in ARCHITECTURES), ""]


def _setuptools() -> int:
    try:
        return int(metadata.version("setuptools").partition(".")[0])
    except metadata.PackageNotFoundError:
        return 0
