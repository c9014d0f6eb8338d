"""The house stands: no room imports one above it, and the runtime needs torch, Triton and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import m3gen
from m3gen.tables.export import export
from m3gen.tables.load import load
from tests.tables.winners import finding, problem

PACKAGE = Path(m3gen.__file__).parent

FLOORS = {
    "m3gen": 0,  # the package itself: version and path
    "m3gen.errors": 0,
    "m3gen.paths": 0,
    "m3gen.templates": 0,
    "m3gen.tuning_db": 0,
    "m3gen.generated": 0,
    "m3gen.targets": 0,
    "m3gen.spec": 0,
    "m3gen.interpreter": 0,
    "m3gen.space": 1,
    "m3gen.ops": 2,
    "m3gen.codegen": 3,
    "m3gen.compiler": 4,
    "m3gen.emulator": 5,
    "m3gen.evaluate": 6,
    "m3gen.peers": 6,
    "m3gen.store": 7,
    "m3gen.tables": 8,
    "m3gen.search": 9,
    "m3gen.replay": 9,
    "m3gen.report": 10,
    "m3gen.cli": 10,
    "m3gen.testing": 10,
    "m3gen.integrations": 10,
    # What was recorded is a space with times: a session may evaluate on it.
    "m3gen.replay.recorded": 1,
    "m3gen.replay.files": 1,
    # The format of a table is data of `spec`: what writes modules and what serves them read it too.
    "m3gen.tables.table": 1,
    "m3gen.tables.text": 1,
    "m3gen.tables.schema": 1,
    "m3gen.tables.load": 1,
    "m3gen.tables.validated": 1,
    "m3gen.tables.files": 1,
    "m3gen.tables.manifest": 1,
}
ROOMS = (
    "m3gen.targets",
    "m3gen.spec",
    "m3gen.space",
    "m3gen.ops",
    "m3gen.store",
    "m3gen.tables",
    "m3gen.search",
    "m3gen.replay",
    "m3gen.peers",
    "m3gen.cli",
)

RUNTIME = "m3gen.runtime"
RUNTIME_MAY = (
    RUNTIME,
    "m3gen.targets",
    "m3gen.spec",
    "m3gen.interpreter",
    "m3gen.tables.load",
    "m3gen.tables.validated",
    "m3gen.tables.manifest",
    "m3gen.tables.schema",
    "m3gen.compiler.fingerprint",
    "m3gen.errors",
    "m3gen.tuning_db",
)
RUNTIME_OUTSIDE = {"torch", "triton"}
BLOCKED = ("sqlalchemy", "optuna", "jinja2", "typer", "rich", "platformdirs", "alembic")


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imports(path: Path) -> set[str]:
    """Every module that the file imports anywhere: in functions and under TYPE_CHECKING too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in MODULES else node.module)
    return found


def floor(module: str) -> int | None:
    """The floor of a module: its own, or that of its room; None for the runtime, which has its own rules."""
    if module == RUNTIME or module.startswith(f"{RUNTIME}."):
        return None
    parts = module.split(".")
    for end in range(len(parts), 1, -1):
        if (known := FLOORS.get(".".join(parts[:end]))) is not None:
            return known
    return FLOORS["m3gen"] if module == "m3gen" else 99  # a new room has no floor until it is given one


def ours(path: Path) -> set[str]:
    return {name for name in imports(path) if name.split(".")[0] == "m3gen"}


def test_every_module_has_a_floor() -> None:
    assert [name for name in MODULES if floor(name) == 99] == []


@pytest.mark.parametrize("module", [name for name in MODULES if floor(name) is not None])
def test_no_import_goes_up(module: str) -> None:
    here = floor(module)
    assert here is not None
    if module == "m3gen.tables":
        here = 0  # runs whenever any module of the room is imported
    up = {name for name in ours(MODULES[module]) if _above(name, here)}
    assert up == set()


@pytest.mark.parametrize("module", [name for name in MODULES if floor(name) is None])
def test_the_runtime_imports_no_more_than_it_may(module: str) -> None:
    found = imports(MODULES[module])
    allowed = {name for name in found if any(name == may or name.startswith(f"{may}.") for may in RUNTIME_MAY)}
    outside = {name.split(".")[0] for name in found - allowed} - RUNTIME_OUTSIDE
    assert outside - set(sys.stdlib_module_names) == set()


def _above(module: str, here: int) -> bool:
    there = floor(module)
    return here < 10 if there is None else there > here  # the runtime is for the top floor alone


def test_a_floor_is_noticed(tmp_path: Path) -> None:
    lazy = tmp_path / "module.py"
    lazy.write_text("def f():\n    from m3gen import search\n    import m3gen.cli.main\n")
    assert {floor(name) for name in ours(lazy)} == {9, 10}


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)
sys.meta_path.insert(0, Blocker())
"""


def test_the_runtime_loads_and_selects_with_torch_and_triton_alone(tmp_path: Path) -> None:
    from m3gen.codegen import generate

    (path,) = export([finding(problem())], tmp_path / "tuning_db")
    generate(load(path), tmp_path / "generated")
    code = f"""{BLOCKER}
from pathlib import Path
from m3gen import runtime
from m3gen.spec import Problem
kernels = runtime.load("gfx942", tables=Path(sys.argv[1]))
selection = kernels.sparse_decode.select(Problem(**{problem().to_dict()}))
loaded = {{name.split(".")[0] for name in sys.modules}} & set({BLOCKED})
print(selection.rung, selection.launcher.__name__, sorted(loaded))
"""
    assert run(code, str(tmp_path / "tuning_db")) == "override sparse_decode []"


def test_the_blocker_blocks() -> None:
    with pytest.raises(AssertionError, match="jinja2 is blocked"):
        run(f"{BLOCKER}\nimport jinja2")


@pytest.mark.parametrize("room", [room for room in ROOMS if room in MODULES])
def test_the_parent_process_imports_neither_torch_nor_triton(room: str) -> None:
    names = [name for name in MODULES if name == room or name.startswith(f"{room}.")]
    # alembic runs env.py itself, with a context that is not there otherwise
    names = [name for name in names if name != "m3gen.store.migrations.env"]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
    assert run(f"{code}print(sorted({{'torch', 'triton'}} & set(sys.modules)))", *names) == "[]"
