"""A kernel for any problem, for Triton's interpreter: the configuration that is through soonest there."""

from __future__ import annotations

from types import ModuleType

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.codegen.module import load_module
from m3gen.codegen.render import render
from m3gen.space import Config, Value
from m3gen.spec import Problem

# The interpreter runs programs one after another and pays for every operation, whatever its size: few programs,
# few iterations, no network of comparisons. First choice first; stages go down before tiles go up, as they share
# the memory that limits both.
_SOONEST: dict[str, tuple[Value, ...]] = {
    "share": ("splits",),
    "splits": (1,),
    "select_splits": (1,),
    "page_splits": (1,),
    "select": ("insert",),
    "num_stages": (1,),
    "tile_n": (128, 64, 32),
}


def build_interpreted(problem: Problem) -> tuple[ModuleType, Config]:
    """The module and the configuration, as `build` gives them: for `m3gen.runtime.load(arch, build=...)` where
    there is no GPU and the tables hold nothing for the model. `UserError` as `build`."""
    op = ops.get(problem.op)
    device = device_of(problem)
    space = op.space(problem, device)
    config = op.default(problem, device)
    defaults = {one.name: one.default for one in space.parameters}  # of what a change makes active
    for name, values in _SOONEST.items():
        for value in values if name in config else ():
            changed = space.canonical({**defaults, **config, name: value})
            if changed in space:
                config = changed
                break
    return load_module(render(op, problem, config)), config
