"""Problems of the cache ops, and ways to run their launchers in the interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.interpreter import interpreting
from m3gen.ops import Case
from m3gen.space import Config
from m3gen.spec import Problem
from m3gen.targets import Device, default_device

OPS = ("qk_norm_rope_insert", "kv_insert", "kv_gather", "kv_copy", "kv_convert", "kv_zero")


def problem(op: str, arch: str = "gfx942", *, scale: str = "none", **fields: Any) -> tuple[Problem, Device]:
    """A problem of the op at TP4; with a scale, in the 8-bit cache of the architecture."""
    device = default_device(arch)
    cache = {} if scale == "none" else {"kv_dtype": device.architecture.fp8, "kv_scale": scale}
    values = {"compute_units": device.compute_units, "context": 1024, **cache, **fields}
    return Problem(op=op, arch=arch, **values), device


def config(of: Problem, device: Device, **values: Any) -> Config:
    """The default, some values of it replaced."""
    op = ops.get(of.op)
    found = op.space(of, device).canonical({**op.default(of, device), **values})
    assert found in op.space(of, device)
    return found


def launcher(of: Problem, device: Device, **values: Any) -> Any:
    """The launcher of one variant."""
    return getattr(load_module(render(ops.get(of.op), of, config(of, device, **values))), of.op)


def launch(of: Problem, device: Device, arguments: dict[str, Any], **values: Any) -> None:
    with interpreting():
        launcher(of, device, **values)(**arguments)


def case(of: Problem, device: Device, name: str, seed: int = 0) -> Case:
    """The op's case of this name."""
    op = ops.get(of.op)
    return next(c for c in op.cases(of, config(of, device), seed) if c.name == name)


def caches(of: Problem, pages: int, *, dtype: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V of zeros, interleaved."""
    from m3gen.spec import dtype as named

    element = dtype or named(of.kv_dtype).torch()
    both = torch.zeros((pages, of.kv_heads, of.page_size, 2 * of.head_dim), dtype=element)
    return both[..., : of.head_dim], both[..., of.head_dim :]


def at_load(of: Problem, rows: int) -> Problem:
    return replace(of, rows=rows)
