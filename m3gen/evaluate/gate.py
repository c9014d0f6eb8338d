"""The correctness gate: a candidate's outputs against the op's float64 reference over its awkward inputs.

It runs in Triton's interpreter or, for AMD, on the machine code that the compiler makes, executed by the emulator, in
a child process or in this one. Importing this module loads neither torch nor Triton;
verifying does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.codegen.source import KernelSource
from m3gen.compiler.fingerprint import fingerprint
from m3gen.evaluate.place import INTERPRETER, MACHINE_CODE, running, unchecked
from m3gen.evaluate.verification import CaseResult, Verification
from m3gen.ops.base import Case, Op, Tolerance
from m3gen.space import Config
from m3gen.spec import Problem, Status

if TYPE_CHECKING:
    import torch

SEEDS = (0, 1)

Launcher = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class GateRequest:
    """What a worker needs to verify one candidate."""

    op: str
    problem: Problem
    config: Config
    seeds: tuple[int, ...] = SEEDS
    on: str = INTERPRETER


def verify_request(request: GateRequest) -> Verification:
    """Render a candidate and verify it: the handler of a worker pool."""
    from m3gen import ops
    from m3gen.codegen import render

    op = ops.get(request.op)
    source = render(op, request.problem, request.config)
    return verify(op, request.problem, request.config, source, request.seeds, request.on)


def verify(
    op: Op,
    problem: Problem,
    config: Config,
    source: KernelSource,
    seeds: tuple[int, ...] = SEEDS,
    on: str = INTERPRETER,
) -> Verification:
    """Run every case of the op under every seed; the first failure ends it and is the verdict.

    Under the first seed each case is launched twice from poisoned outputs, and both launches must agree in every
    bit: in the interpreter the first with every 32-bit integer operation checked for overflow, on machine code each
    with its waves in another order. The verdict
    is COMPILE when the module does not load, RUNTIME when a launch raises, NONDETERMINISTIC when two launches
    differ, CORRECTNESS when the outputs are outside the op's tolerances. What the op itself raises, and the
    `UserError` for a Triton whose interpreter is not known, are raised on.
    """
    started = time.monotonic()
    results: list[CaseResult] = []
    with running(on, problem.arch):
        try:
            launcher = _load(source)
        except Exception as error:
            reason = f"{source.entry} does not load: {_one_line(error)}"
            return _verdict(source, on, started, results, Status.COMPILE, reason)
        for case in _cases(op, problem, config, seeds):
            tolerance = op.tolerance(problem, case.tolerances)
            result = _run(op, case, launcher, tolerance, on, thorough=case.seed == seeds[0])
            results.append(result)
            if result.status is not Status.OK:
                reason = f"case {case.name!r}, seed {case.seed}: {result.reason}"
                return _verdict(source, on, started, results, result.status, reason)
    if not results:
        raise ValueError(f"op {op.name!r} has no case for {problem}: nothing would be verified")
    return _verdict(source, on, started, results, Status.OK)


def _verdict(
    source: KernelSource, on: str, started: float, results: list[CaseResult], status: Status, reason: str = ""
) -> Verification:
    return Verification(
        status=status,
        on=on,
        source_sha=source.sha,
        cases=tuple(results),
        seconds=time.monotonic() - started,
        reason=reason,
        environment=_environment(on),
    )


def _load(source: KernelSource) -> Launcher:
    from m3gen.codegen import load_module

    launcher: Launcher = getattr(load_module(source), source.entry)
    return launcher


def _cases(op: Op, problem: Problem, config: Config, seeds: tuple[int, ...]) -> Iterator[Case]:
    for seed in seeds:
        yield from op.cases(problem, config, seed)


def _run(op: Op, case: Case, launcher: Launcher, tolerance: Tolerance, on: str, *, thorough: bool) -> CaseResult:
    from m3gen.evaluate.comparison import compare, first_difference

    reference = op.reference(case)  # before the launch, which may spoil its inputs
    kept = {name: case.arguments[name].clone() for name in case.kept}
    try:
        if thorough:
            first = _launch(case, launcher, kept)
            with unchecked(on):
                second = _launch(case, launcher, kept)
        else:
            with unchecked(on):
                first = second = _launch(case, launcher, kept)
    except Exception as error:
        return _failed(case, Status.RUNTIME, _one_line(error))
    for name, output in first.items():
        if (row := first_difference(output, second[name])) is not None:
            return _failed(case, Status.NONDETERMINISTIC, f"{name}: row {row} differs between two launches")
    found = compare(first, reference, case.zero_rows, tolerance, case.exact)
    return CaseResult(
        name=case.name,
        grid=case.tolerances,
        status=Status.CORRECTNESS if found.reason else Status.OK,
        row_rms=found.row_rms,
        mean_abs=found.mean_abs,
        max_abs=found.max_abs,
        past_rounding=found.past_rounding,
        reason=found.reason,
    )


def _launch(case: Case, launcher: Launcher, kept: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """One launch from poisoned outputs, those of `kept` as they were, and copies of what it left in them."""
    from m3gen.evaluate.comparison import poison

    for name in case.outputs:
        if name in kept:
            case.arguments[name].copy_(kept[name])
        else:
            poison(case.arguments[name])
    launcher(**case.arguments)
    return {name: case.arguments[name].clone() for name in case.outputs}


def _failed(case: Case, status: Status, reason: str) -> CaseResult:
    unknown = float("inf")
    return CaseResult(
        name=case.name,
        grid=case.tolerances,
        status=status,
        row_rms=unknown,
        mean_abs=unknown,
        max_abs=unknown,
        reason=reason,
    )


def _one_line(error: BaseException) -> str:
    """The first error of a chain, which the interpreter wraps, without its further lines."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _environment(on: str) -> dict[str, str]:
    import torch
    import triton

    found = {"triton": triton.__version__, "torch": torch.__version__, "on": on}
    return found | {"compiler": fingerprint()} if on == MACHINE_CODE else found
