"""`examples/transformers_machine_code.py` prints what its docstring says."""

from __future__ import annotations

import ast
import doctest
import os
import subprocess
import sys
import textwrap

import pytest

from tests.store.samples import ROOT

EXAMPLE = ROOT / "examples/transformers_machine_code.py"


def test_it_prints_what_it_says() -> None:
    pytest.importorskip("transformers")
    docstring = ast.get_docstring(ast.parse(EXAMPLE.read_text())) or ""
    said = textwrap.dedent(docstring.split("aside:\n\n")[1]) + "\n"
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        text=True,
        capture_output=True,
        timeout=900,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert doctest.OutputChecker().check_output(said, ran.stdout, doctest.ELLIPSIS), ran.stdout
