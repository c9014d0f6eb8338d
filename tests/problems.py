"""Problems that several tests share."""

from __future__ import annotations

from typing import Any

from m3gen.spec import Problem
from m3gen.targets import ARCHITECTURES, Device, default_device

ARCHS = tuple(ARCHITECTURES)


def decode(op: str, arch: str = "gfx942", *, fp8: bool = False, **fields: Any) -> tuple[Problem, Device]:
    """A problem of a decode attention of MiniMax-M3 at TP4 on the default device of `arch`."""
    device = default_device(arch)
    values: dict[str, Any] = {"compute_units": device.compute_units, "context": 2048, **fields}
    if fp8:
        values = {"kv_dtype": device.architecture.fp8, "kv_scale": "scalar", **values}
    return Problem(op=op, arch=arch, **values), device


def sparse_decode(arch: str = "gfx942", **fields: Any) -> tuple[Problem, Device]:
    return decode("sparse_decode", arch, **fields)


def dense_decode(arch: str = "gfx942", **fields: Any) -> tuple[Problem, Device]:
    return decode("dense_decode", arch, **fields)
