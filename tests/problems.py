"""Problems that several tests share."""

from __future__ import annotations

from typing import Any

from m3gen.spec import Problem
from m3gen.targets import ARCHITECTURES, Device, default_device

ARCHS = tuple(ARCHITECTURES)


def sparse_decode(arch: str = "gfx942", *, fp8: bool = False, **fields: Any) -> tuple[Problem, Device]:
    """A sparse_decode problem of MiniMax-M3 at TP4 on the default device of `arch`."""
    device = default_device(arch)
    values: dict[str, Any] = {"compute_units": device.compute_units, "context": 2048, **fields}
    if fp8:
        values = {"kv_dtype": device.architecture.fp8, "kv_scale": "scalar", **values}
    return Problem(op="sparse_decode", arch=arch, **values), device
