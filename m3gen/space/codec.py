"""`Codec`: a config as one integer, so that a million fit in 8 MB and sort as they enumerate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from m3gen.space.config import Value
from m3gen.space.parameter import Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]


class Codec:
    """Mixed-radix keys, the first parameter most significant, a digit for each value and one for inactive.

    `ValueError` when the keys of these parameters do not fit in 63 bits.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        # A parameter that is always active needs no digit for inactive.
        self.radices = tuple(len(p.values) + (p.active is not None) for p in self.parameters)
        if math.prod(self.radices) >= 1 << 63:
            raise ValueError(
                f"a space of {math.prod(self.radices):.1e} keys is too large: drop parameters or values"
            )

    def encode(self, values: Mapping[str, Value]) -> int:
        """The key of a canonical mapping; `ValueError` on an unknown name, an illegal or a missing value."""
        key = 0
        found = 0
        for parameter, radix in zip(self.parameters, self.radices, strict=True):
            digit = len(parameter.values)
            if parameter.name in values:
                digit = parameter.index(values[parameter.name])
                found += 1
            elif parameter.active is None:
                raise ValueError(f"{parameter.name} is missing")
            key = key * radix + digit
        if found < len(values):
            raise ValueError(f"unknown parameters in {sorted(values)}")
        return key

    def decode(self, key: int) -> dict[str, Value]:
        """The active values behind a key, in the order of declaration."""
        digits = []
        for radix in reversed(self.radices):
            key, digit = divmod(key, radix)
            digits.append(digit)
        return {
            parameter.name: parameter.values[digit]
            for parameter, digit in zip(self.parameters, reversed(digits), strict=True)
            if digit < len(parameter.values)
        }

    def digits(self, keys: Keys, position: int, bound: int) -> Keys:
        """The digits of the parameter at `position` in keys of the first `bound` parameters."""
        scale = math.prod(self.radices[position + 1 : bound])
        found = keys // scale if scale > 1 else keys
        return found % self.radices[position] if position else found

    def columns(self, keys: Keys, positions: Sequence[int], bound: int) -> list[dict[str, Value]]:
        """The active values at `positions` of each key of the first `bound` parameters."""
        names = [self.parameters[p].name for p in positions]
        columns = []
        for position in positions:
            values: list[Value | None] = [*self.parameters[position].values, None]
            columns.append([values[digit] for digit in self.digits(keys, position, bound).tolist()])
        if not any(self.parameters[p].active for p in positions):
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*columns, strict=True)
        ]
