"""Decode attention on tiny shapes: a problem, a config outside any space, inputs, and the launcher run on them."""

from __future__ import annotations

from typing import Any

import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.interpreter import interpreting, overflow_unchecked
from m3gen.ops import decode_inputs
from m3gen.space import Config
from m3gen.spec import Problem

HEAD_DIM, PAGE = 16, 16


def tiny(op: str, **fields: Any) -> Problem:
    """fp32, so that a wrong token cannot hide in rounding."""
    shape = {"head_dim": HEAD_DIM, "page_size": PAGE, "topk": 4, "group_size": 4, "context": 1024}
    values = {"q_dtype": "fp32", "kv_dtype": "fp32", "rows": 8, **shape, **fields}
    return Problem(op=op, arch="gfx942", compute_units=304, **values)


def config(**values: Any) -> Config:
    """A config of either op; one split has no merge. Larger tiles than the spaces allow on tiny heads."""
    chosen = {"tile_n": 16, "splits": 1, "heads_in": "m", "loads": "apart", "masked_loads": True, **values}
    if chosen["splits"] * chosen.get("page_splits", 1) > 1:
        chosen = {"partials": "fp32", "merge": "kernel", "merge_warps": 1, **chosen}
    return Config(chosen)


def inputs(
    problem: Problem,
    chosen: Config,
    seq_lens: list[int],
    *,
    seed: int = 0,
    hostile: bool = False,
    **layout: Any,
) -> dict[str, Any]:
    """Launcher arguments of one case, as the ops' own cases are made."""
    flags = ops.get(problem.op).flags(problem, chosen)
    lists = problem.op == "sparse_decode"
    builder = decode_inputs.CaseBuilder(problem, flags, decode_inputs.Layout(**layout), seed, lists=lists)
    return dict(builder.case("test", seq_lens, hostile=hostile).arguments)


def run(problem: Problem, chosen: Config, arguments: dict[str, Any]) -> torch.Tensor:
    """The output of the generated launcher in the interpreter, from a poisoned buffer."""
    op = ops.get(problem.op)
    arguments["out"].fill_(float("nan"))
    with interpreting(), overflow_unchecked():
        module = load_module(render(op, problem, chosen))
        getattr(module, op.name)(**arguments)
    return arguments["out"].clone()


def expected(problem: Problem, arguments: dict[str, Any]) -> torch.Tensor:
    return decode_inputs.reference(problem, arguments)


def error(actual: torch.Tensor, wanted: torch.Tensor) -> float:
    """Largest error over the largest value of the reference; NaN counts as infinite."""
    difference = (actual.double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-9)
    return float("inf") if difference.isnan() else float(difference)


def check(problem: Problem, chosen: Config, arguments: dict[str, Any], bound: float = 2e-6) -> torch.Tensor:
    """Run, hold against the reference, and give the output."""
    actual, wanted = run(problem, chosen, arguments), expected(problem, arguments)
    assert actual.isfinite().all(), f"rows {(~actual.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()}"
    assert error(actual, wanted) <= bound
    empty = (wanted == 0).flatten(1).all(1)
    assert (actual[empty] == 0).all()
    return actual
