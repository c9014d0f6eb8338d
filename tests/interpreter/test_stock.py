"""What the corrections are for. When a fault has gone from stock Triton, its correction can go too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FAULTS = ("dot_of_bf16", "sum_of_two_bf16", "rounding_to_bf16", "saturation_to_e4m3fn")


@cache
def faults(*arguments: str) -> dict[str, bool]:
    done = subprocess.run(
        [sys.executable, "-m", "interpreter.stock", *arguments],
        env={
            **os.environ,
            "TRITON_INTERPRET": "1",
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("fault", FAULTS)
def test_stock_interpreter_is_wrong(fault: str) -> None:
    assert faults()[fault]


@pytest.mark.parametrize("fault", FAULTS)
def test_corrected_interpreter_is_right_where_triton_was_imported_for_interpreting(fault: str) -> None:
    assert not faults("corrected")[fault]
