"""A worker runs a candidate while it can win one of its problems. Nothing is compiled here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from m3gen import ops
from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate import climb
from m3gen.evaluate.predict import predict
from m3gen.evaluate.rungs import ANALYTIC_MARGIN, PASSENGER_MARGIN, STOPPED, ClimbRequest, can_win
from m3gen.spec import Problem, Status
from m3gen.targets import device
from tests.evaluate.test_predict import FACTS
from tests.problems import sparse_decode

OP = ops.get("sparse_decode")
MI300X = device("MI300X")
CONFIG = OP.space(sparse_decode()[0], MI300X).canonical(
    {**OP.default(sparse_decode()[0], MI300X), "splits": 1, "merge": "kernel", "merge_warps": 4, "page_splits": 1}
)
RAN = CompileResult(status=Status.OK, reason="ran")


def launches(problem: Problem) -> tuple[Launch, ...]:
    return (Launch("sparse_decode_attend", (), (), (problem.rows, 1, 1)),)


def facts(problem: Problem) -> KernelFacts:
    return replace(FACTS, kernel="sparse_decode_attend", arch=problem.arch)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[CompileRequest]:
    """What was run in the emulator; compiling succeeds with facts that a hand has written."""
    ran: list[CompileRequest] = []

    def compile_candidate(request: CompileRequest) -> CompileResult:
        if not request.config:
            return CompileResult(status=Status.COMPILE, reason="broken")
        return CompileResult(
            status=Status.OK,
            launches=tuple(map(launches, request.problems)),
            keys=(("key",),) * len(request.problems),
            facts={"key": facts(request.problems[0])},
        )

    def observed(request: CompileRequest, result: CompileResult) -> CompileResult:
        ran.append(request)
        return replace(result, reason="ran")

    monkeypatch.setattr(climb, "compile_candidate", compile_candidate)
    monkeypatch.setattr(climb, "observed", observed)
    return ran


def request(*limits: float | None, arch: str = "gfx942", name: str = "MI300X") -> ClimbRequest:
    problems = tuple(sparse_decode(arch, rows=rows)[0] for rows in (1, 256)[: len(limits)])
    return ClimbRequest(CompileRequest("sparse_decode", problems, CONFIG), name, limits)


def analytic_us(rows: int) -> float:
    problem = sparse_decode(rows=rows)[0]
    found = predict(launches(problem), [facts(problem)], OP.work(problem, CONFIG), MI300X).value_us
    assert found is not None
    return found


def test_what_cannot_win_is_compiled_and_not_run(compiled: list[CompileRequest]):
    limit = ANALYTIC_MARGIN * analytic_us(1)
    assert climb.climb_candidate(request(limit * 1.001)).reason == "ran"
    stopped = climb.climb_candidate(request(limit * 0.999))
    assert len(compiled) == 1
    assert stopped.ok
    assert stopped.facts["key"].extra == {STOPPED: True}


def test_one_problem_that_it_can_win_is_enough(compiled: list[CompileRequest]):
    assert climb.climb_candidate(request(0.1, 1e6)).reason == "ran"
    assert climb.climb_candidate(request(0.1, None)).reason == "ran"
    assert climb.climb_candidate(request(0.1, 0.1)).reason == ""


def test_a_problem_that_did_not_ask_for_it_has_the_narrower_margin(compiled: list[CompileRequest]):
    limit = PASSENGER_MARGIN * analytic_us(256)
    assert climb.climb_candidate(request(0.1, limit * 1.001)).reason == "ran"
    assert climb.climb_candidate(request(0.1, limit * 0.999)).reason == ""


def test_where_there_is_no_emulator_nothing_is_stopped(compiled: list[CompileRequest]):
    assert STOPPED not in climb.climb_candidate(request(0.1, arch="sm_90", name="H200")).facts["key"].extra


def test_a_failure_passes_through(compiled: list[CompileRequest]):
    one = request(0.1)
    broken = replace(one, compile=replace(one.compile, config={}))  # type: ignore[arg-type]
    assert climb.climb_candidate(broken).status is Status.COMPILE


def test_without_a_limit_everything_can_win():
    assert can_win(1e9, 1.0, None)
    assert can_win(10.0, 0.5, 5.0)
    assert not can_win(10.1, 0.5, 5.0)
