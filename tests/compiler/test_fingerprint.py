from __future__ import annotations

import subprocess
import sys

import pytest
import triton

from m3gen.compiler.fingerprint import code_settings, fingerprint


def test_names_the_installed_triton() -> None:
    assert fingerprint().startswith(f"triton-{triton.__version__}-")
    assert fingerprint() == fingerprint()


@pytest.mark.parametrize(
    "setting",
    [
        "AMDGCN_USE_BUFFER_OPS",
        "TRITON_HIP_USE_ASYNC_COPY",
        "DISABLE_LLVM_OPT",
        "PTXAS_OPTIONS",
        "TRITON_NOT_YET_KNOWN",
    ],
)
def test_settings_that_change_code_change_it(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setenv(setting, "0")
    assert fingerprint() == f"{before} {setting}=0"


def test_settings_that_do_not_are_left_out() -> None:
    neutral = {
        "TRITON_CACHE_DIR": "/elsewhere",
        "TRITON_HOME": "/elsewhere",
        "TRITON_INTERPRET": "1",
        "TRITON_PRINT_AUTOTUNING": "1",
        "AMDGCN_ENABLE_DUMP": "0",
        "PATH": "/bin",
    }
    assert code_settings(neutral) == {}


def test_the_parent_can_ask_without_triton() -> None:
    code = (
        "import sys; from m3gen.compiler.fingerprint import fingerprint; fingerprint();"
        "import m3gen.compiler.pool, m3gen.compiler.request, m3gen.compiler.cache;"
        "print([name for name in ('triton', 'torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
