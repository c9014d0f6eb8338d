"""What the compiler would answer, without it: every launch an op is said to make, all with the same facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from m3gen import ops
from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.spec import Status
from tests.store import samples

Answers = list[tuple[CompileRequest, CompileResult]]


def result(request: CompileRequest, facts: KernelFacts | None = None) -> CompileResult:
    works = [ops.get(request.op).work(problem, request.config) for problem in request.problems]
    programs = [(problem.rows, 1, 1) for problem in request.problems]
    one = facts or samples.facts()
    return CompileResult(
        status=Status.OK,
        launches=tuple(
            tuple(Launch(work.kernel, (), (), grid) for work in of_problem)
            for of_problem, grid in zip(works, programs, strict=True)
        ),
        keys=tuple(tuple(work.kernel for work in of_problem) for of_problem in works),
        facts={work.kernel: replace(one, kernel=work.kernel) for work in works[0]},
        compiler="triton-3.9.0",
    )


def compiled(requests: Sequence[CompileRequest]) -> Answers:
    return [(request, result(request)) for request in requests]


def failing(requests: Sequence[CompileRequest], fails: Callable[[CompileRequest], bool]) -> Answers:
    """Those for which `fails` do not compile."""
    died = CompileResult(status=Status.COMPILE, reason="no such layout")
    return [(request, died if fails(request) else result(request)) for request in requests]
