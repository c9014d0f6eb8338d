"""Ops as machine code: what only running it shows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.emulator import Code, Emulator, emulating, parse
from m3gen.evaluate.gate import verify
from m3gen.ops.base import Case
from m3gen.spec import Status
from tests.problems import decode

ARCHS = ["gfx942", "gfx950"]
OP = ops.get("sparse_decode")


def last_merges(arch: str) -> tuple[Any, Any]:
    """A problem, and a config in which the last program of a row to arrive merges, several waves each, which read
    in the merge what other waves stored."""
    problem, device = decode("sparse_decode", arch, group_size=16)
    space = OP.space(problem, device)
    changed = {"merge": "last", "num_warps": 4, "num_stages": 1, "tile_n": 64, "splits": 4}
    changed |= {"loads": "together", "masked_loads": False, "partials": "fp32"}
    defaults = {one.name: one.default for one in space.parameters}
    return problem, space.canonical({**defaults, **OP.default(problem, device), **changed})


@pytest.mark.parametrize("arch", ARCHS)
def test_the_gate_runs_on_machine_code(arch: str) -> None:
    problem, config = last_merges(arch)
    verdict = verify(OP, problem, config, render(OP, problem, config), (0,), "machine-code")
    assert (verdict.status, verdict.on, verdict.reason) == (Status.OK, "machine-code", "")
    assert len(verdict.cases) > 3


class Unwaited(Emulator):
    """Without the waits for stores that a template asks for in front of a barrier."""

    def code(self, kernel: Any, launch: Any) -> Code:
        code = super().code(kernel, launch)
        text = re.sub(r"#ASMSTART\n\ts_waitcnt vmcnt\(0\)", "#ASMSTART", code.assembly)
        assert text != code.assembly
        return replace(code, assembly=text, program=parse(text))


def outputs(case: Case, launcher: Any, emulator: Emulator) -> torch.Tensor:
    for name in ("out", "partial_out", "partial_lse"):  # what is read too early is then NaN
        case.arguments[name].fill_(float("nan"))
    emulator.emulated(launcher)(**case.arguments)
    return case.arguments["out"].clone()


@pytest.mark.parametrize("arch", ARCHS)
def test_a_program_arrived_before_its_other_waves_had_stored(arch: str) -> None:
    """A barrier of AMD's does not wait for stores, and a release waits for those of its own wave: the program that
    merges could read what another wave of the last but one had not stored yet."""
    problem, config = last_merges(arch)
    launcher = load_module(render(OP, problem, config)).sparse_decode
    case = next(iter(OP.cases(problem, config, 0)))
    with emulating(arch):
        launcher(**case.arguments)
    right = case.arguments["out"].clone()
    assert right.isfinite().all()
    found = [outputs(case, launcher, Unwaited(arch, seed=seed)) for seed in range(4)]
    assert any(not torch.equal(one, right) for one in found)
