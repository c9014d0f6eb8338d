"""How near two problems are, and what a config of one is on the other."""

from __future__ import annotations

import math

from m3gen.space import Config, Space
from m3gen.spec import Problem, dtype

# A doubling of the load is a step; another shape is as far as two, another dtype as four, another arch as eight.
_SHAPE = ("group_size", "kv_heads", "head_dim", "page_size", "topk", "query_len")
_DTYPES = ("q_dtype", "kv_dtype")


def distance(one: Problem, other: Problem) -> float:
    """0 for the same problem; infinite for another op's. Devices of one arch and dialects of fp8 are alike."""
    if one.op != other.op:
        return math.inf
    steps: float = abs(math.log2(one.rows / other.rows)) + abs(math.log2(one.context / other.context))
    steps += 2 * sum(getattr(one, name) != getattr(other, name) for name in _SHAPE)
    steps += 4 * sum(_kind(getattr(one, name)) != _kind(getattr(other, name)) for name in _DTYPES)
    return steps + (one.kv_scale != other.kv_scale) + 8 * (one.arch != other.arch)


def fitted(config: Config, space: Space) -> Config | None:
    """The config in another space: what that lacks is dropped, what the config lacks is as by default. None when the
    result breaks a rule."""
    values = {}
    for parameter in space.parameters:
        value = config.get(parameter.name, parameter.default)
        try:
            parameter.index(value)
        except ValueError:
            value = parameter.default
        values[parameter.name] = value
    found = space.canonical(values)
    return found if found in space else None


def _kind(name: str) -> str:
    return "fp8" if dtype(name).is_fp8 else name
