"""Generated kernels run: on the CPU under the interpreter, against the op's float64 reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from m3gen import runtime
from m3gen.spec import Problem
from tests.tables.winners import OP, config, fp8, problem

WORKSPACE = ("partial_out", "partial_lse", "arrivals")


def small_case(of: Problem) -> Any:
    (case,) = (c for c in OP.cases(of, config(of), seed=0) if c.name == "plain layout")
    return case


def worst_row(out: torch.Tensor, reference: torch.Tensor) -> float:
    error = (out.double() - reference).flatten(1).pow(2).mean(1).sqrt()
    return float((error / reference.flatten(1).pow(2).mean(1).sqrt().clamp_min(1e-30)).max())


@pytest.mark.parametrize("of", [problem(rows=16), fp8(rows=16)], ids=["bf16", "fp8"])
def test_the_plain_call_gives_the_reference(home: Path, of: Problem) -> None:
    kernels = runtime.load("gfx942", tables=home / "tuning_db")
    case = small_case(of)
    arguments = {name: value for name, value in case.arguments.items() if name not in WORKSPACE}
    kernels.sparse_decode(of, **arguments)
    bound = OP.tolerance(of, case.tolerances).row_rms
    assert bound is not None
    assert worst_row(arguments["out"], OP.reference(case)["out"]) < bound
    assert not arguments["out"][list(case.zero_rows)].any()


def test_a_dispatch_runs_with_a_workspace_made_once(home: Path) -> None:
    dispatch = runtime.load("gfx942", tables=home / "tuning_db").sparse_decode.bind(problem(), 16)
    case = small_case(problem(rows=16))
    selection = dispatch.selection(2)
    buffers = selection.buffers(16, 1, 4, "cpu")
    assert set(buffers) == set(selection.workspace(16, 1, 4))
    arguments = {name: value for name, value in case.arguments.items() if name not in WORKSPACE}
    dispatch(2, **arguments, **buffers)
    assert worst_row(arguments["out"], OP.reference(case)["out"]) < 4e-3


def test_a_plain_call_with_more_rows_than_the_problem_is_refused(home: Path) -> None:
    kernels = runtime.load("gfx942", tables=home / "tuning_db")
    case = small_case(problem())
    with pytest.raises(ValueError, match=r"q has 2 rows, the problem 1: use problem\.with_load\(2\)"):
        kernels.sparse_decode(problem(rows=1), **case.arguments)


def test_a_plain_call_without_its_first_argument(home: Path) -> None:
    with pytest.raises(TypeError, match="needs the argument 'q'"):
        runtime.load("gfx942", tables=home / "tuning_db").sparse_decode(problem())
