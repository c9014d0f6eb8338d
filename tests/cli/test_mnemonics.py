"""`m3gen mnemonics` with a fake compiler, and what its worker reads off a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from m3gen import ops
from m3gen.cli import work
from m3gen.cli.work import Candidate
from m3gen.emulator.mnemonics import Use, Used, uses
from m3gen.spec import Status
from m3gen.tables.export import export
from tests.cli.conftest import Run
from tests.tables.winners import finding, problem

ADD = Use("v_add_f32", "valu", 4, "VOP2")
LOAD = Use("ds_read_b32", "lds", 4, "DS")
WONDER = Use("v_wonder_b32", refused="the emulator does not know v_wonder_b32, line 7: v_wonder_b32 v0, v1")


class FakeCompiler:
    """Gives what is in `found`, whatever it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Candidate] = []
        self.found: list[Used] = [
            Used(Status.OK, kernels={"a": (ADD, LOAD)}),
            Used(Status.OK, kernels={"a": (ADD, LOAD), "b": (ADD,)}),
        ]

    def __call__(self, candidates: Sequence[Candidate], jobs: int) -> Iterator[Used]:
        self.asked += candidates
        return iter(self.found)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    compiler = FakeCompiler()
    monkeypatch.setattr(work, "mnemonics", compiler)
    return compiler


@pytest.fixture
def tables(home: Path) -> Path:
    export([finding(problem())], home / "tuning_db")
    return home / "tuning_db"


def test_winners_are_listed_with_what_the_table_says(run: Run, compiler: FakeCompiler, tables: Path) -> None:
    ran = run("mnemonics", "--arch", "gfx942")
    assert ran.status == 0
    cells = [line.split() for line in ran.out.splitlines()]
    assert ["v_add_f32", "2", "valu", "4", "VOP2", "yes"] in cells
    assert ["ds_read_b32", "1", "lds", "4", "DS", "yes"] in cells
    assert ran.out.splitlines()[-1] == "gfx942: 2 mnemonics in 2 kernels, all covered"
    [one] = compiler.asked
    assert (one.problem, one.config) == (problem(), finding(problem()).winner.config)


def test_with_all_the_defaults_of_every_op_beside_them(run: Run, compiler: FakeCompiler, tables: Path) -> None:
    assert run("mnemonics", "--arch", "gfx942", "--all").status == 0
    assert {one.problem.op for one in compiler.asked} == set(ops.names())
    assert compiler.asked[0].problem == problem()


def test_two_architectures(run: Run, compiler: FakeCompiler) -> None:
    for options in (("--arch", "gfx942", "--arch", "gfx950"), ("--arch", "gfx942,gfx950")):
        found = run("mnemonics", *options, "--all", "--json").object["archs"]
        assert [one["arch"] for one in found] == ["gfx942", "gfx950"]


def test_one_that_is_not_covered_ends_with_1(run: Run, compiler: FakeCompiler, tables: Path) -> None:
    compiler.found.append(Used(Status.OK, kernels={"c": (WONDER,)}))
    ran = run("mnemonics", "--arch", "gfx942")
    assert ran.status == 1
    assert "NO: the emulator does not know v_wonder_b32" in ran.out
    assert ran.out.splitlines()[-1] == "gfx942: 3 mnemonics in 3 kernels, 1 NOT covered"
    found = run("mnemonics", "--arch", "gfx942", "--json").object["archs"][0]["mnemonics"]
    assert [(one["mnemonic"], one["covered"]) for one in found] == [
        ("ds_read_b32", True),
        ("v_add_f32", True),
        ("v_wonder_b32", False),
    ]


def test_a_variant_that_does_not_compile_ends_with_1(run: Run, compiler: FakeCompiler, tables: Path) -> None:
    compiler.found.append(Used(Status.COMPILE, "the template does not render: x"))
    ran = run("mnemonics", "--arch", "gfx942")
    assert ran.status == 1
    assert "gfx942: compile: the template does not render: x" in ran.out
    assert ran.out.splitlines()[-1].endswith("all covered; 1 variant FAILED")


def test_what_cannot_be_listed(run: Run, compiler: FakeCompiler) -> None:
    assert "run m3gen tune --arch gfx942 first" in run("mnemonics", "--arch", "gfx942").line
    assert "only AMD's machine code can be executed" in run("mnemonics", "--arch", "sm_90", "--all").line


def test_the_first_line_that_is_refused_says_why() -> None:
    text = """kernel:
\tv_add_f32_e32 v0, v1, v2
\tv_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], 0
\tv_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], 0 cbsz:1
\tv_wonder_b32 v0, v1
\ts_endpgm
.Lfunc_end0:
"""
    end, add, product, wonder = uses(text, "gfx942")
    assert add == ADD
    assert (end.mnemonic, end.refused) == ("s_endpgm", "")
    assert product.unit == "matrix"
    assert "line 4" in product.refused
    assert (wonder.unit, wonder.refused) == (
        "",
        "the emulator does not know v_wonder_b32, line 5: v_wonder_b32 v0, v1",
    )
