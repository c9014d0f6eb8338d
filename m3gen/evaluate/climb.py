"""The rungs of one candidate that take a worker: compile it, and run it if it can still win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from m3gen import ops, targets
from m3gen.codegen.launch import Launch
from m3gen.compiler.candidate import compile_candidate
from m3gen.compiler.request import CompileResult
from m3gen.evaluate.candidate import observed
from m3gen.evaluate.predict import predict
from m3gen.evaluate.rungs import ANALYTIC_MARGIN, PASSENGER_MARGIN, STOPPED, ClimbRequest, can_win
from m3gen.ops.base import Work
from m3gen.targets import Device, Vendor


def climb_candidate(request: ClimbRequest) -> CompileResult:
    """The pool's handler. A candidate that can win none of its problems is not run; its facts then say so.

    The problem that it was asked for has the wider margin.

    What it may have been seen to do earlier is not looked at: whether it is stopped depends on the limits alone.
    """
    result = compile_candidate(request.compile)
    if not result.ok or _climbs(request, result):
        return observed(request.compile, result)
    facts = {key: replace(one, extra={**one.extra, STOPPED: True}) for key, one in result.facts.items()}
    return replace(result, facts=facts)


def _climbs(request: ClimbRequest, result: CompileResult) -> bool:
    device = targets.device(request.device)
    if device.architecture.vendor is not Vendor.AMD or None in request.limits_us:
        return True
    op, config = ops.get(request.compile.op), request.compile.config
    runs = zip(request.compile.problems, result.launches, result.keys, request.limits_us, strict=True)
    margins = (ANALYTIC_MARGIN, *[PASSENGER_MARGIN] * (len(request.limits_us) - 1))
    return any(
        can_win(_analytic_us(result, launches, keys, op.work(problem, config), device), margin, limit)
        for margin, (problem, launches, keys, limit) in zip(margins, runs, strict=True)
    )


def _analytic_us(
    result: CompileResult, launches: Sequence[Launch], keys: Sequence[str], work: Sequence[Work], device: Device
) -> float:
    """What the machine code takes as far as it can be told without running it."""
    found = predict(launches, [result.facts[key] for key in keys], work, device).value_us
    assert found is not None
    return found
