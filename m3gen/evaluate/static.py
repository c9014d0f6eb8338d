"""The static rung: what can be refused in microseconds, with the rule that refuses it."""

from __future__ import annotations

from m3gen import ops
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.targets import Device

JUDGE = "static-1"


def check(problem: Problem, config: Config, device: Device) -> Evaluation | None:
    """None when the candidate may climb; else the first rule of the op's space that it breaks."""
    violations = ops.get(problem.op).space(problem, device).violations(config)
    if not violations:
        return None
    first = violations[0]
    return Evaluation(
        stage=Stage.STATIC, status=Status.CONSTRAINT, judge=JUDGE, code=first.code, reason=first.reason
    )
