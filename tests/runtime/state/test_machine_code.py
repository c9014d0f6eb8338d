"""A layer's whole decode as machine code of AMD's GPUs: what the compiler made of every op, end to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from triton.runtime import interpreter

from m3gen import runtime
from m3gen.codegen import build
from m3gen.emulator import Emulator
from m3gen.runtime import KernelSet, ModelState
from tests.runtime.state.layers import check_parts, check_steps

ARCHS = ["gfx942", "gfx950"]


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    def interpreted(*arguments: object, **keywords: object) -> None:
        raise AssertionError("a kernel was interpreted")

    monkeypatch.setattr(interpreter.InterpretedFunction, "run", interpreted)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("dtype", "query_len"), [(torch.float32, 1), (torch.bfloat16, 4)])
def test_steps_of_a_layer_are_the_models_arithmetic(arch: str, dtype: torch.dtype, query_len: int) -> None:
    emulator = Emulator(arch, profile=True)
    kernels = runtime.load(arch, build=build, adapt=emulator.emulated)
    check_steps(kernels, dtype, query_len)
    ran = Counter(profile.code.name for profile in emulator.profiles)
    print(ran)


@pytest.mark.parametrize("arch", ARCHS)
def test_an_engine_that_norms_stores_selects_and_attends_by_itself(arch: str) -> None:
    emulator = Emulator(arch)
    check_parts(runtime.load(arch, build=build, adapt=emulator.emulated))
    assert emulator.launches >= 3
