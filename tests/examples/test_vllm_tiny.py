"""`examples/vllm_tiny.py` prints what its docstring says."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
import textwrap

from tests.integrations.vllm.serving import needs_vllm
from tests.store.samples import ROOT

EXAMPLE = ROOT / "examples/vllm_tiny.py"


@needs_vllm
def test_it_prints_what_it_says() -> None:
    docstring = ast.get_docstring(ast.parse(EXAMPLE.read_text())) or ""
    said = textwrap.dedent(docstring.split("Prints:\n\n")[1]) + "\n"
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE)], text=True, capture_output=True, timeout=900, check=False, cwd="/"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert doctest.OutputChecker().check_output(said, ran.stdout, doctest.ELLIPSIS), ran.stdout
