"""The page of what every default compiles to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docs import make_matrix
from docs.make_matrix import Compiled, candidates, page
from m3gen import ops
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.request import CompileResult
from m3gen.report.words import dtypes
from m3gen.spec import Status
from tests import problems
from tests.store import samples

PAGE = Path(make_matrix.__file__).with_name("matrix.md")


def compiled(status: Status = Status.OK, reason: str = "", **changes: Any) -> Compiled:
    """A default of two launches."""
    first, second = facts(**changes), facts(kernel="merge_splits")
    result = CompileResult(
        status=status,
        reason=reason,
        keys=(("a", "b"),),
        facts={"a": first, "b": second},
        compiler="triton-3.9.0",
    )
    return Compiled(problems.sparse_decode()[0], result)


def facts(**changes: Any) -> KernelFacts:
    clean = {"vector_spills": 0, "scalar_spills": 0, "scratch_bytes": 0, "shared_bytes": 1024, "registers": 64}
    return replace(samples.facts(), **{"kernel": "sparse_decode_attend", **clean, **changes})


def test_every_launch_has_a_row_with_every_kind_of_spill() -> None:
    text = page([compiled(scalar_spills=171)])
    assert "Made by `python docs/make_matrix.py` with triton-3.9.0." in text
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| sparse")]
    head = next(line for line in text.splitlines() if line.startswith("| op")).strip("| ").split(" | ")
    first, second = (dict(zip(head, row, strict=True)) for row in rows)
    assert (first["launch"], second["launch"], second["kernel"]) == ("1 of 2", "2 of 2", "`merge_splits`")
    assert (first["vector spill"], first["scalar spill"], first["scratch"]) == ("0", "171", "0")
    assert "1 default, 2 launches: no scratch, no vector spill. Scalar spill: in 1 launch, at most 171" in text


@pytest.mark.parametrize("spoiled", [{"vector_spills": 3}, {"scratch_bytes": 8}])
def test_what_goes_to_memory_is_not_clean(spoiled: dict[str, int]) -> None:
    assert compiled(scalar_spills=5).is_clean
    assert not compiled(**spoiled).is_clean
    assert "**1 spill to memory or fail**" in page([compiled(), compiled(**spoiled)])


def test_a_default_that_does_not_compile_has_a_row_too() -> None:
    failed = Compiled(problems.sparse_decode()[0], CompileResult(status=Status.COMPILE, reason="no such dtype"))
    assert not failed.is_clean
    assert "**compile**: no such dtype" in page([failed])


@pytest.mark.parametrize("arch", problems.ARCHS)
def test_the_page_holds_every_default(arch: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {arch}\n")[1].split("\n## ")[0]
    shown = candidates(arch)
    assert {one.problem.op for one in shown} == set(ops.names())
    assert f"{len(shown)} defaults, " in section
    for one in shown:
        p = one.problem
        assert f"| {p.op} | {dtypes(p)} | {p.query_len} | {p.rows} | 1 of" in section


def test_no_default_uses_memory_for_registers() -> None:
    assert "spill to memory or fail" not in PAGE.read_text(encoding="utf-8")
