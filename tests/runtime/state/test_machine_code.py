"""A layer's whole decode as machine code of AMD's GPUs: what the compiler made of every op, end to end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from m3gen import runtime
from m3gen.codegen import build
from m3gen.runtime import KernelSet, ModelState
from m3gen.testing.traced_build import TracedBuild
from tests.emulator.counting import Counting
from tests.runtime.state.layers import check_parts, check_steps

ARCHS = ["gfx942", "gfx950"]


def check(run: Callable[[KernelSet], ModelState], arch: str) -> None:
    """Every launch that the state counts was executed as machine code, and no other."""
    emulator, built = Counting(arch), TracedBuild()
    state = run(runtime.load(arch, build=built, adapt=lambda launcher: emulator.emulated(built.shipped(launcher))))
    assert emulator.ran == built.launched(state.counters)
    assert emulator.launches == emulator.ran.total() > 0


@pytest.mark.usefixtures("never_interpreted")
@pytest.mark.parametrize("arch", ARCHS)
def test_steps_of_a_layer_are_the_models_arithmetic(arch: str) -> None:
    check(lambda kernels: check_steps(kernels, torch.bfloat16, query_len=1), arch)


@pytest.mark.usefixtures("never_interpreted")
@pytest.mark.parametrize("arch", ARCHS)
def test_an_engine_that_norms_stores_selects_and_attends_by_itself(arch: str) -> None:
    check(check_parts, arch)


@pytest.mark.usefixtures("never_interpreted")
def test_without_the_emulator_launches_are_interpreted() -> None:
    """What the tests above would not be deceived by."""
    with pytest.raises(AssertionError, match="a kernel was interpreted"):
        check_parts(runtime.load("gfx942", build=build))
