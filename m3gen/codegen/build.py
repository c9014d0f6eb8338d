"""A kernel for any problem, now: the field's default rendered on the spot, neither tuned nor verified."""

from __future__ import annotations

from types import ModuleType

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.codegen.module import load_module
from m3gen.codegen.render import render
from m3gen.space import Config
from m3gen.spec import Problem


def build(problem: Problem) -> tuple[ModuleType, Config]:
    """The module of the op's default configuration for a problem, and that configuration.

    What `m3gen.runtime.load(arch, build=build)` asks when no table has a kernel. `UserError` for an unknown op
    and for a problem of which the op has no variant.
    """
    op = ops.get(problem.op)
    config = op.default(problem, device_of(problem))
    return load_module(render(op, problem, config)), config
