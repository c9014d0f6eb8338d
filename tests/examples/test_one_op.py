"""`examples/one_op.py` prints what its docstring says."""

from __future__ import annotations

import ast
import doctest
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.runtime.conftest import make
from tests.store.samples import ROOT
from tests.tables.winners import finding, fp8, problem

EXAMPLE = ROOT / "examples/one_op.py"
SHIPPED = ROOT / "tuning_db/gfx942/sparse_decode.json"


def expected() -> str:
    """The last block of the docstring."""
    docstring = ast.get_docstring(ast.parse(EXAMPLE.read_text())) or ""
    return textwrap.dedent(docstring[docstring.index("aside:\n\n") + len("aside:\n\n") :]) + "\n"


def run(tmp_path: Path, *arguments: object) -> str:
    """The output of the example for a user who has no tables of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("M3GEN_")}
    path = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH"))))
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE), *map(str, arguments)],
        env={**kept, "M3GEN_HOME": str(tmp_path / "home"), "PYTHONPATH": path},
        cwd="/",
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def matches(output: str) -> bool:
    return doctest.OutputChecker().check_output(expected(), output, doctest.ELLIPSIS)


def test_with_tables_of_ones_own(tmp_path: Path) -> None:
    real = {"group_size": 16, "page_size": 128, "topk": 16, "rows": 4, "context": 2048}
    make(tmp_path, finding(problem(**real), 10.0), finding(fp8(**real), 8.0))
    output = run(tmp_path, tmp_path / "tuning_db")
    assert matches(output), output
    assert "bf16: override table: row for 4 rows, context 2048 and above, 10 us" in output


@pytest.mark.skipif(not SHIPPED.exists(), reason="no table ships yet")
def test_with_the_tables_that_ship(tmp_path: Path) -> None:
    output = run(tmp_path)
    assert matches(output), output
    assert "bf16: release table" in output
