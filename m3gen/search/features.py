"""`Features`: the configs of a space as numbers, for what learns from evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from m3gen.space import Choice, Parameter, Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """`rows`: one per id. `groups`: how many of its columns, in their order, go together."""

    rows: Floats
    groups: tuple[int, ...]


@lru_cache(maxsize=8)
def features(space: Space) -> Features:
    """Three views of each parameter's value: its place in the range of 0 to 1, where values have an order; how often
    two divides it, where that says more than the place; and which one it is, as a column per value, for what is
    smooth in neither. Inactive is one more value, in the middle of the range."""
    import numpy as np

    columns, groups = [], []
    for position, parameter in zip(space.positions.T, space.parameters, strict=True):
        size = len(parameter.values)
        values = size + (parameter.active is not None)
        if size > 1 and not (isinstance(parameter, Choice) and size > 2):
            columns.append(np.where(position == size, 0.5, position / (size - 1)))
            groups.append(1)
        if (halvings := _halvings(parameter)) is not None:
            columns.append(np.where(position == size, 0.5, np.array([*halvings, 0.5])[position]))
            groups.append(1)
        if values > 2:
            # By the root of two, so that two different values are at the distance of one.
            columns += [(position == value) / math.sqrt(2) for value in range(values)]
            groups.append(values)
    if not columns:  # a space of one config
        return Features(np.zeros((len(space), 1)), (1,))
    return Features(np.stack(columns, axis=1).astype(np.float64), tuple(groups))


def _halvings(parameter: Parameter) -> list[float] | None:
    """How often two divides each value, in the range of 0 to 1; None where values are no integers over zero, are all
    alike in it, or rise with it, as powers of two do. Hardware comes in powers of two: of blocks of 16, 32, ... 256
    threads those of 64, 128 and 256 are kin, which the place cannot say: score 0.56 for 0.35 without, 61 % for 47 %
    within 5 % of the optimum, 24 repeats of four spaces (docs/search.md)."""
    if not all(type(value) is int and value > 0 for value in parameter.values):
        return None
    twos = [(value & -value).bit_length() for value in map(int, parameter.values)]
    low, high = min(twos), max(twos)
    if low == high or twos == list(range(low, high + 1)):
        return None
    return [(count - low) / (high - low) for count in twos]
