"""The gate on a toy op, right and wrong in every way the gate must tell apart."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from m3gen import codegen
from m3gen.codegen.source import KernelSource
from m3gen.evaluate import Verification
from m3gen.evaluate.gate import GateRequest, verify
from m3gen.ops.base import Case, Tolerance
from m3gen.space import Config
from m3gen.spec import Problem, Status

ROWS, COLUMNS = 6, 32

TEMPLATE = '''
import torch
import triton
import triton.language as tl

CALLS = 0

@triton.jit
def double_rows(x, lengths, y, row_id, COLUMNS: tl.constexpr, TILE: tl.constexpr):
    """Row by row y = 2 x, zero where the length is zero; row_id = row."""
    row = tl.program_id(0)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(x + row * COLUMNS + at).to(tl.float32) * 2
    value = tl.where(tl.load(lengths + row) > 0, value, 0.0)
    tl.store(y + row * COLUMNS + at, value.to(y.dtype.element_ty))
    tl.store(row_id + row, row)

def double(x, lengths, y, row_id):
    global CALLS
    CALLS += 1
    rows, columns = x.shape
    double_rows[(rows, columns // 16)](x, lengths, y, row_id, columns, 16, num_warps=1)
'''


@dataclass(frozen=True)
class Fault:
    """`old` in the template becomes `new`; the gate must answer with `status` and a reason holding `word`."""

    name: str
    old: str
    new: str
    status: Status
    word: str


FAULTS = (
    Fault("skips the last row", "[(rows, ", "[(rows - 1, ", Status.CORRECTNESS, "row 5 of 6 holds nan"),
    Fault("skips the last tile", "// 16)", "// 16 - 1)", Status.CORRECTNESS, "row 0 of 6 holds nan"),
    Fault("NaN in a padding row", "value, 0.0)", "value, float('nan'))", Status.CORRECTNESS, "row 2 of 6"),
    Fault("padding row not zero", "value, 0.0)", "value, 1e-20)", Status.CORRECTNESS, "row 2 of 6 must be"),
    Fault("overflow to infinity", "* 2\n", "* 1e38 * 1e38\n", Status.CORRECTNESS, "inf"),
    Fault("factor off by a percent", "* 2\n", "* 2.02\n", Status.CORRECTNESS, "over 0.005"),
    Fault("one small row lost", "> 0,", "> 1,", Status.CORRECTNESS, "row 4 is off by 1 of its RMS"),
    Fault("wrong row number", "row_id + row, row)", "row_id + row, row ^ 1)", Status.CORRECTNESS, "row_id"),
    Fault(
        "counts its launches",
        "columns, 16, num_warps=1)\n",
        "columns, 16, num_warps=1)\n    y[3, 0] += CALLS\n",
        Status.NONDETERMINISTIC,
        "y: row 3",
    ),
    Fault(
        "launcher raises",
        "    CALLS += 1\n",
        "    raise RuntimeError('no such device\\nand more')\n",
        Status.RUNTIME,
        "RuntimeError: no such device",
    ),
    Fault("kernel raises", "row = tl.program_id(0)", "row = tl.arange(0, 3)", Status.RUNTIME, "power of 2"),
    Fault(
        "an offset wraps, and nothing shows",
        "row = tl.program_id(0)\n",
        "row = tl.program_id(0)\n    unused = (row + 1) * 0x7FFFFFFF\n",
        Status.RUNTIME,
        "int32 overflow",
    ),
    Fault(
        "wraps at 32 bits and back",
        "row = tl.program_id(0)",
        "row = tl.program_id(0) + 2147483647 - 2147483647",
        Status.RUNTIME,
        "int32 overflow detected for operation add",
    ),
    Fault("does not load", "import triton\n", "import tritone\n", Status.COMPILE, "tritone"),
    Fault("lacks its entry", "def double(", "def twice(", Status.COMPILE, "double"),
)


def source(text: str) -> KernelSource:
    return KernelSource(op="double", entry="double", text=text, templates={})


class Double:
    """Two outputs, one of them integer; row 2 is padding and row 4 a thousand times smaller than the rest."""

    name = "double"
    dtype = torch.bfloat16
    launches: list[tuple[str, int]]

    def __init__(self) -> None:
        self.launches = []

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        for name in ("plain", "strided"):
            self.launches.append((name, seed))
            generator = torch.Generator().manual_seed(seed)
            x = torch.randn(ROWS, COLUMNS, generator=generator)
            x[4] *= 1e-3
            lengths = torch.tensor([5, 5, 0, 5, 1, 5], dtype=torch.int32)
            wide = torch.empty(ROWS, COLUMNS * 2, dtype=self.dtype)
            yield Case(
                name=name,
                problem=problem,
                arguments={
                    "x": x.to(torch.bfloat16),
                    "lengths": lengths,
                    "y": wide.view(ROWS * 2, COLUMNS)[:ROWS],
                    "row_id": torch.empty(ROWS, dtype=torch.int32),
                },
                outputs=("y", "row_id"),
                zero_rows=(2,),
                tolerances="awkward",
                seed=seed,
            )

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        alive = (case.arguments["lengths"] > 0).double()[:, None]
        return {
            "y": case.arguments["x"].double() * 2 * alive,
            "row_id": torch.arange(ROWS, dtype=torch.float64),
        }

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        assert grid == "awkward"
        return Tolerance(row_rms=5e-3, mean_abs=1e-1, max_abs=1e-1)


@pytest.fixture(autouse=True)
def load_from_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that needs nothing but a file, whatever the code generator does."""

    def load(kernel: KernelSource) -> ModuleType:
        path = tmp_path / f"{kernel.sha[:12]}.py"
        path.write_text(kernel.text)
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        exec(compile(kernel.text, str(path), "exec"), module.__dict__)
        return module

    monkeypatch.setattr(codegen, "load_module", load, raising=False)


def judge(text: str, op: Any = None) -> Verification:
    problem = Problem(op="double", arch="gfx942", compute_units=304)
    return verify(op or Double(), problem, Config({}), source(text))


def test_right_kernel_passes_every_case_under_both_seeds() -> None:
    op = Double()
    verdict = judge(TEMPLATE, op)
    assert verdict.ok, verdict.reason
    assert op.launches == [("plain", 0), ("strided", 0), ("plain", 1), ("strided", 1)]
    assert [case.name for case in verdict.cases] == [name for name, _ in op.launches]
    assert all(case.row_rms == 0 for case in verdict.cases)  # doubling is exact in bf16
    assert verdict.source_sha == source(TEMPLATE).sha
    assert verdict.on == verdict.environment["on"] == "interpreter"
    assert verdict.environment["torch"] == torch.__version__
    assert verdict.environment["triton"]


def test_one_seed_is_half_the_cases() -> None:
    op = Double()
    verdict = verify(
        op, Problem(op="double", arch="gfx942", compute_units=304), Config({}), source(TEMPLATE), (7,)
    )
    assert op.launches == [("plain", 7), ("strided", 7)]
    assert len(verdict.cases) == 2


def test_the_error_past_rounding_is_kept_where_it_is_bounded() -> None:
    class Bounded(Double):
        def tolerance(self, problem: Problem, grid: str) -> Tolerance:
            return Tolerance(past_rounding=0.1)

    assert all(case.past_rounding is None for case in judge(TEMPLATE).cases)
    off = TEMPLATE.replace("* 2\n", "* 2.02\n")
    errors = [case.past_rounding for case in judge(off, Bounded()).cases]
    assert all(error is not None and 0.01 < error < 0.1 for error in errors)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_fault(fault: Fault) -> None:
    text = TEMPLATE.replace(fault.old, fault.new)
    assert text != TEMPLATE
    verdict = judge(text)
    assert verdict.status is fault.status, verdict.reason
    assert fault.word in verdict.reason
    assert "\n" not in verdict.reason
    if fault.status is not Status.COMPILE:
        assert "case 'plain', seed 0" in verdict.reason
        assert [case.status for case in verdict.cases] == [fault.status]  # the first failure ends it


def test_the_lost_row_hides_from_every_bound_but_its_own() -> None:
    class Blind(Double):
        def tolerance(self, problem: Problem, grid: str) -> Tolerance:
            return Tolerance(mean_abs=1e-1, max_abs=1e-1)

    assert judge(TEMPLATE.replace("> 0,", "> 1,"), Blind()).ok


def test_fp8_output_left_unwritten_is_found() -> None:
    class Float8(Double):
        dtype = torch.float8_e4m3fnuz

        def tolerance(self, problem: Problem, grid: str) -> Tolerance:
            return Tolerance(row_rms=0.5)

    assert judge(TEMPLATE, Float8()).ok
    assert "row 5 of 6 holds nan" in judge(TEMPLATE.replace("[(rows, ", "[(rows - 1, "), Float8()).reason


def test_a_kernel_that_spoils_its_inputs_cannot_move_the_reference() -> None:
    text = TEMPLATE.replace("    CALLS += 1\n", "    CALLS += 1\n    x.zero_()\n")
    assert judge(text).status is Status.CORRECTNESS


class InPart(Double):
    """Doubles what lies in the even rows of a tensor that it also writes; the odd rows stay."""

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        for case in super().cases(problem, config, seed):
            case.arguments["y"].copy_(case.arguments["x"])
            yield replace(case, outputs=("y", "row_id"), zero_rows=(), kept=("y",), exact=("y",))

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        y = case.arguments["y"].clone()
        y[::2] *= 2
        return {**super().reference(case), "y": y}


IN_PART = TEMPLATE.replace(
    "double_rows[(rows, columns // 16)](x, lengths, y,", "double_rows[(rows, 2)](y, lengths, y,"
)
IN_PART = IN_PART.replace("tl.load(lengths + row) > 0, value, 0.0", "row % 2 == 0, value, value / 2")


def test_an_output_written_in_part_is_as_it_was_before_every_launch() -> None:
    verdict = judge(IN_PART, InPart())  # doubling in place twice would be a factor of 4
    assert verdict.ok, verdict.reason


def test_what_must_stay_must_stay_bit_by_bit() -> None:
    verdict = judge(IN_PART.replace("value / 2)", "value * 0.502)"), InPart())
    assert verdict.status is Status.CORRECTNESS
    assert "y: row 1 of 6 is not the reference bit by bit" in verdict.reason


def test_an_op_without_cases_verifies_nothing_and_says_so() -> None:
    class Empty(Double):
        def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
            return iter(())

    with pytest.raises(ValueError, match="no case"):
        judge(TEMPLATE, Empty())


def test_request_crosses_a_process_boundary() -> None:
    problem = Problem(op="double", arch="gfx942", compute_units=304)
    request = GateRequest("double", problem, Config({"TILE": 16}))
    assert pickle.loads(pickle.dumps(request)) == request


def test_importing_the_gate_loads_neither_torch_nor_triton() -> None:
    code = "import sys, m3gen.evaluate.gate; print(sorted({'torch', 'triton'} & set(sys.modules)))"
    root = Path(codegen.__path__[0]).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
