"""Element types against torch and Triton, and the package's promise to import neither."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import triton.language as tl

from m3gen.spec import DTYPES, DType, dtype


@pytest.mark.parametrize("d", DTYPES.values(), ids=lambda d: d.name)
def test_agrees_with_torch_and_triton(d: DType) -> None:
    info = torch.finfo(d.torch())
    assert d.torch() is getattr(torch, d.torch_name)
    assert d.max == info.max
    assert d.bytes * 8 == info.bits == getattr(tl, d.triton_name).primitive_bitwidth
    assert d.is_fp8 == d.torch_name.startswith("float8")


def test_names_are_their_keys() -> None:
    assert all(dtype(name) is d and d.name == name for name, d in DTYPES.items())


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(KeyError, match=r"unknown dtype 'fp8': expected one of bf16, .*e4m3fn, e4m3fnuz"):
        dtype("fp8")


def test_spec_and_targets_import_only_the_standard_library() -> None:
    """The command line starts with them, and the runtime loads them beside an inference engine."""
    code = (
        "import sys, m3gen.spec, m3gen.targets\n"
        "known = sys.stdlib_module_names | set(sys.builtin_module_names) | {'m3gen'}\n"
        "before = set(sys.argv[1].split(','))\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} - known - before))"
    )
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(','.join({n.split('.')[0] for n in sys.modules}))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    found = subprocess.run([sys.executable, "-c", code, bare], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
