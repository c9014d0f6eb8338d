from __future__ import annotations

import errno
import pickle
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import m3gen.codegen
import m3gen.ops
from m3gen.codegen import KernelSource
from m3gen.compiler import candidate
from m3gen.compiler.candidate import compile_candidate
from m3gen.compiler.pool import WorkerPool
from m3gen.compiler.request import CompileRequest
from m3gen.errors import UserError
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.targets import default_device
from tests.compiler import kernels

LAUNCHER = """
def run(x, out, rows, grid):
    scale[(grid,)](x, out, 0.5, B=256, num_warps=4)
    sum_rows[(grid,)](x, out, rows, 33, B=1024, num_warps=4)
"""


@dataclass
class FakeOp:
    """An op whose template is given; one of its kernels sees the number of rows."""

    text: str
    name: str = "fake"

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        import torch

        x = torch.empty(1 << 20, device="meta")
        return {"x": x, "out": x, "rows": 16 * problem.rows, "grid": problem.rows}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Compile `LAUNCHER` behind these kernels, for these loads, against a cache of the test's own."""
    monkeypatch.setenv("M3GEN_CACHE", str(tmp_path))

    def run(*parts: str, rows: tuple[int, ...] = (1,), arch: str = "gfx950") -> candidate.CompileResult:
        source = replace(kernels.source(*parts), templates={"fake.py.jinja": "0" * 64})
        op = FakeOp(source.text)
        monkeypatch.setattr(m3gen.ops, "get", lambda name: op)
        monkeypatch.setattr(m3gen.codegen, "render", lambda op, problem, config: source)
        problem = Problem(op="fake", arch=arch, compute_units=256)
        problems = tuple(problem.with_load(n) for n in rows)
        return compile_candidate(CompileRequest("fake", problems, Config({})))

    return run


def test_launches_keys_and_facts_per_problem(run: Any) -> None:
    result = run(kernels.SCALE, kernels.SUM_ROWS, LAUNCHER, rows=(1, 2, 4))
    assert result.ok
    assert [[launch.kernel for launch in launches] for launches in result.launches] == [["scale", "sum_rows"]] * 3
    assert [launches[0].grid for launches in result.launches] == [(1, 1, 1), (2, 1, 1), (4, 1, 1)]
    # `rows` is a multiple of 16 throughout and the grid is no part of a key: two kernels serve all three.
    assert len(set(result.keys)) == 1
    assert set(result.facts) == set(result.keys[0])
    assert (result.compiled, result.cached) == (2, 0)
    assert result.facts[result.keys[0][1]].kernel == "sum_rows"
    assert result.templates == {"fake.py.jinja": "0" * 64}
    assert pickle.loads(pickle.dumps(result)) == result


def test_second_time_comes_from_the_cache_and_is_equal(run: Any) -> None:
    first = run(kernels.SCALE, kernels.SUM_ROWS, LAUNCHER)
    # Another text around the same kernels: one of them is found by its key, the changed one is not.
    again = run("# regenerated\n", kernels.SUM_ROWS, kernels.SCALE.replace("* factor", "+ factor"), LAUNCHER)
    assert (again.compiled, again.cached) == (1, 1)
    assert again.keys[0][1] == first.keys[0][1]
    same = run(kernels.SCALE, kernels.SUM_ROWS, LAUNCHER)
    assert (same.compiled, same.cached) == (0, 2)
    assert same.facts == first.facts


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [
        ((kernels.SCALE, "def run(:\n"), Status.COMPILE, "module does not load: SyntaxError"),
        (
            (kernels.SCALE, "def run(**_):\n    raise ValueError('too many rows')\n"),
            Status.RUNTIME,
            "too many rows",
        ),
        (
            (kernels.SCALE, "def run(x, out, **_):\n    scale[(1,)](x, out, 0.5, B=100)\n"),
            Status.COMPILE,
            "scale: .*power of 2",
        ),
        (
            (kernels.SCALE, "def run(x, out, **_):\n    scale[(1,)](x, out, 0.5, B=256, maxnreg=64)\n"),
            Status.COMPILE,
            "scale: option maxnreg=64",
        ),
        (
            (kernels.SCALE, "def run(x, out, **_):\n    scale[(1,)](x, out, 0.5, B=4096, num_warps=32)\n"),
            Status.RESOURCES,
            "scale: threads: 2048",
        ),
    ],
)
def test_failures_are_statuses(run: Any, parts: tuple[str, ...], status: Status, reason: str) -> None:
    result = run(*parts)
    assert result.status is status
    assert re.search(reason, result.reason)
    assert "\n" not in result.reason
    assert result.source_sha


def test_an_interpreting_process_is_the_users_to_mend(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(UserError, match="TRITON_INTERPRET"):
        run(kernels.SCALE, LAUNCHER)


def test_a_full_disk_is_no_fault_of_the_candidate(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("m3gen.compiler.triton_adapter.build", build)
    with pytest.raises(UserError, match=r"No space left on device.*set TMPDIR"):
        run(kernels.SCALE, kernels.SUM_ROWS, LAUNCHER)


def test_what_compiled_before_a_failure_is_kept(run: Any) -> None:
    launcher = "def run(x, out, **_):\n    scale[(1,)](x, out, 0.5, B=256)\n    scale[(1,)](x, out, 0.5, B=100)\n"
    result = run(kernels.SCALE, launcher)
    assert result.status is Status.COMPILE
    assert [facts.kernel for facts in result.facts.values()] == ["scale"]


def test_template_that_does_not_render_is_a_compile_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def render(*_: Any) -> KernelSource:
        raise KeyError("TILE_N")

    monkeypatch.setenv("M3GEN_CACHE", str(tmp_path))
    monkeypatch.setattr(m3gen.codegen, "render", render)
    monkeypatch.setattr(m3gen.ops, "get", lambda name: FakeOp(""))
    problem = Problem(op="fake", arch="gfx942", compute_units=304)
    result = compile_candidate(CompileRequest("fake", (problem,), Config({})))
    assert result.status is Status.COMPILE
    assert "TILE_N" in result.reason


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_an_ops_default_compiles_in_a_pool(arch: str, tmp_path: Path) -> None:
    device = default_device(arch)
    op = m3gen.ops.get(m3gen.ops.names()[0])
    problem = Problem(op=op.name, arch=arch, compute_units=device.compute_units, rows=8, query_len=2)
    request = CompileRequest(op.name, (problem, problem.with_load(16)), op.default(problem, device))
    with WorkerPool(jobs=1, env={"M3GEN_CACHE": str(tmp_path)}) as pool:
        pool.submit(request)
        done: list[Any] = []
        while not done:
            done = pool.poll(60.0)
    (answer,) = done
    assert answer.status is Status.OK, answer.reason
    assert answer.value.ok, answer.value.reason
    assert len(answer.value.launches) == 2
    facts = answer.value.facts.values()
    assert {f.arch for f in facts} == {arch}
    assert any(f.loops and f.matrix_instructions for f in facts)
    assert not any({"unknown_matrix", "unknown_memory"} & set(f.extra) for f in facts)
