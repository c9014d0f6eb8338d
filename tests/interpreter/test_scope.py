"""Interpreting inside a process that also compiles: nothing may leak from one into the other."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from m3gen import interpreter
from m3gen.errors import UserError

from . import kernels

MODULE = """
import triton
import triton.language as tl

@triton.jit
def half(x):
    return tl.cdiv(x, 2)

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    block = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y, tl.sum(tl.softmax(block), 0) + tl.max(block, 0) + half(n))

def run(x, y):
    kernel[(1,)](x, y, x.numel(), BLOCK=16, num_warps=1)
"""


def load(path: Path) -> ModuleType:
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(module: ModuleType) -> float:
    y = torch.empty(1)
    module.run(torch.arange(10.0), y)
    return y.item()


def compiled() -> str:
    """Machine code of a kernel that calls helpers of the language written in Triton."""
    source = ASTSource(
        kernels.reduce,
        {"x": "*bf16", "y": "*bf16", "OP": "constexpr", "ROWS": "constexpr", "COLUMNS": "constexpr"},
        constexprs={(2,): "argmax", (3,): 8, (4,): 64},
    )
    return triton.compile(source, target=GPUTarget("hip", "gfx942", 64)).asm["amdgcn"]


def test_module_loaded_before_runs_interpreted(tmp_path: Path) -> None:
    module = load(tmp_path / "before.py")
    with interpreter.interpreting():
        assert answer(module) == pytest.approx(15.0)


def test_module_loaded_inside_stays_interpreted(tmp_path: Path) -> None:
    with interpreter.interpreting():
        module = load(tmp_path / "inside.py")
    assert answer(module) == pytest.approx(15.0)


def test_one_kernel_can_be_interpreted_without_the_context() -> None:
    x, y = torch.ones(16).bfloat16(), torch.empty(16).bfloat16()
    interpreter.interpreted(kernels.unary)[(1,)](x, y, "neg", 16)
    assert (y == -1).all()


def test_contexts_nest() -> None:
    with interpreter.interpreting():
        with interpreter.interpreting():
            assert interpreter.active()
        assert interpreter.active()
        kernels.launch(kernels.fill, torch.empty(8), 1.0, 8)
        assert interpreter.active()
    assert not interpreter.active()


def test_launching_left_the_language_patched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # compile anew, not from the cache
    names = {owner: dict(vars(owner)) for owner in (tl, tl.core, tl.math, tl.standard, tl.tensor, JITFunction)}
    kernels.launch(kernels.reduce, torch.ones(8, 64).bfloat16(), torch.empty(8), "sum", 8, 64)
    with pytest.raises(triton.runtime.errors.InterpreterError), interpreter.interpreting():
        kernels.dot[(1,)](*(torch.ones(4) for _ in range(4)), 3, 3, 3)  # no power of two
    for owner, before in names.items():
        after = vars(owner)
        assert [name for name in before if after[name] is not before[name]] == []
    assert not triton.knobs.runtime.interpret
    assert "TRITON_INTERPRET" not in os.environ
    assert "s_endpgm" in compiled()


def test_require_says_what_to_do() -> None:
    with pytest.raises(UserError, match=r"TRITON_INTERPRET=1.*interpreting\(\)"):
        interpreter.require()
    with interpreter.interpreting():
        interpreter.require()


def test_install_twice_is_install_once() -> None:
    interpreter.install()
    builder = triton.runtime.interpreter.interpreter_builder
    interpreter.install()
    assert triton.runtime.interpreter.interpreter_builder is builder


def test_importing_the_package_loads_neither_triton_nor_torch() -> None:
    code = "import sys, m3gen.interpreter; print(sorted({'triton', 'torch', 'numpy'} & set(sys.modules)))"
    root = Path(interpreter.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
