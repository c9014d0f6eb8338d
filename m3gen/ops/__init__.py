"""The operations, one file each: a module here with an `OP` is an op, nothing else registers it."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from m3gen.errors import UserError
from m3gen.ops.base import Cache, Case, Op, Tolerance, Work, field_config

__all__ = ["Cache", "Case", "Op", "Tolerance", "Work", "field_config", "get", "names"]


@cache
def _all() -> dict[str, Op]:
    found: dict[str, Op] = {}
    for info in pkgutil.iter_modules(__path__):
        op = getattr(import_module(f"{__name__}.{info.name}"), "OP", None)
        if op is not None:
            found[op.name] = op
    return found


def names() -> tuple[str, ...]:
    """Every op, by name, sorted."""
    return tuple(sorted(_all()))


def get(name: str) -> Op:
    """The op called `name`; `UserError` naming the nearest otherwise."""
    if op := _all().get(name):
        return op
    from difflib import get_close_matches

    near = get_close_matches(name, names(), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"unknown op {name!r}: {hint}known ops: {', '.join(names())}")
