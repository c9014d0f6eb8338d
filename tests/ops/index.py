"""Problems of the index ops, and their kernels run in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.interpreter import interpreting
from m3gen.ops import Case, Op
from m3gen.space import Config
from m3gen.spec import Problem
from m3gen.targets import Device, default_device

DTYPES = (("bf16", "bf16"), ("fp8", "fp8"), ("fp16", "fp16"), ("fp32", "fp32"), ("bf16", "fp8"), ("fp32", "bf16"))


def problem(
    op: str, arch: str = "gfx942", dtypes: tuple[str, str] = ("bf16", "bf16"), **fields: Any
) -> tuple[Problem, Device]:
    """A problem of an index op on the default device of `arch`, "fp8" in its dialect."""
    device = default_device(arch)
    q, kv = (device.architecture.fp8 if name == "fp8" else name for name in dtypes)
    fields = {"group_size": 1, "q_dtype": q, "kv_dtype": kv, **fields}
    return Problem(op=op, arch=arch, compute_units=device.compute_units, **fields), device


def config(op: Op, problem: Problem, device: Device, **values: Any) -> Config:
    """The op's default with other values of some parameters; one that the rules allow."""
    space = op.space(problem, device)
    defaults = {parameter.name: parameter.default for parameter in space.parameters}
    made = space.canonical({**defaults, **op.default(problem, device), **values})
    assert not space.violations(made), space.violations(made)
    return made


def run(op: Op, problem: Problem, config: Config, arguments: Mapping[str, Any]) -> None:
    """One launch in the interpreter; the outputs are among the arguments."""
    with interpreting():
        getattr(load_module(render(op, problem, config)), op.name)(**arguments)


def case(op_name: str, problem: Problem, config: Config, name: str, seed: int = 0) -> Case:
    return next(case for case in ops.get(op_name).cases(problem, config, seed) if case.name == name)


def same(actual: torch.Tensor, wanted: torch.Tensor, atol: float = 5e-5) -> bool:
    """Equal up to `atol`; infinities and NaN must be just that."""
    return torch.allclose(actual.double(), wanted.double(), rtol=0, atol=atol, equal_nan=True)
