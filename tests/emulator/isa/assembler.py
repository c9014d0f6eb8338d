"""LLVM's assembler, as it comes with Triton: whether lines are instructions of an architecture."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def assemble(lines: Iterable[str], arch: str) -> None:
    """`AssertionError` if one of the lines is none; the assembler names it on stderr."""
    compiler = pytest.importorskip("triton.backends.amd.compiler")
    if not hasattr(compiler, "assemble_amdgcn"):
        pytest.skip("this Triton has no assembler to call")
    text = "\n".join(["\t.text", "kernel:", *(f"\t{line}" for line in lines), ""])
    try:
        compiler.assemble_amdgcn(text, arch, "")
    except RuntimeError as error:
        raise AssertionError(f"{error}: see stderr") from None


def assembles(line: str, arch: str) -> bool:
    try:
        assemble([line], arch)
    except AssertionError:
        return False
    return True
