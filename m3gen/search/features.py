"""`Features`: the configs of a space as numbers, for what learns from evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from m3gen.space import Choice, Space

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
    """Two views of each parameter's value: its place in the range of 0 to 1, where values have an order; and which
    one it is, as a column per value, for what is not smooth in the place. Inactive is one more value, in the middle
    of the range."""
    import numpy as np

    columns, groups = [], []
    for position, parameter in zip(space.positions.T, space.parameters, strict=True):
        size = len(parameter.values)
        values = size + (parameter.active is not None)
        if size > 1 and not (isinstance(parameter, Choice) and size > 2):
            columns.append(np.where(position == size, 0.5, position / (size - 1)))
            groups.append(1)
        if (twos := _twos(parameter.values)) is not None:
            columns.append(np.array([*twos, 0.5])[position])
            groups.append(1)
        if values > 2:
            # By the root of two, so that two different values are at the distance of one.
            columns += [(position == value) / math.sqrt(2) for value in range(values)]
            groups.append(values)
    if not columns:  # a space of one config
        return Features(np.zeros((len(space), 1)), (1,))
    return Features(np.stack(columns, axis=1).astype(np.float64), tuple(groups))


def _twos(values: Sequence[Any]) -> list[float] | None:
    """How often each number can be halved, as a share of the most: what vectors, banks and waves divide into. None
    where that says no more than the place, for powers of two, or nothing."""
    if not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in values):
        return None
    twos = [(value & -value).bit_length() - 1 for value in values]
    if len(set(twos)) < 2 or twos == sorted(twos):
        return None
    return [one / max(twos) for one in twos]
