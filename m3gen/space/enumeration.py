"""The valid points of a space: prefixes grow by one parameter, and a rule cuts them once its names are bound.

A rule or an activity is called once per distinct combination of what it reads, never once per point: that,
and keys in place of configs, is what makes a million raw points a matter of a tenth of a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from m3gen.space.codec import Codec
from m3gen.space.config import Value
from m3gen.space.constraint import Constraint, Visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from m3gen.space.codec import Keys

# Above this many prefixes at once (128 MB of keys) the space is refused rather than the machine exhausted.
MAX_POINTS = 1 << 24


@dataclass(frozen=True, slots=True)
class Enumeration:
    """`keys`: the valid points, ascending. `refused`: raw points by the code of the rule that cut them."""

    keys: Keys
    refused: Mapping[str, int]


def binding_level(constraint: Constraint, names: Sequence[str]) -> int:
    """Index of the last parameter that the rule reads; `ValueError` when it needs one the space lacks.

    An optional one that the space lacks is one that is never active.
    """
    if missing := [name for name in constraint.needs if name not in names]:
        raise ValueError(f"constraint {constraint.code!r} needs {missing[0]!r}, which this space lacks")
    return max(names.index(name) for name in constraint.reads if name in names)


def enumerate_space(codec: Codec, constraints: Sequence[Constraint]) -> Enumeration:
    """All valid points. `constraints` come in the order in which `Space.violations` reports them."""
    import numpy as np

    names = [p.name for p in codec.parameters]
    refused = {constraint.code: 0 for constraint in constraints}
    keys = np.zeros(1, dtype=np.int64)
    for level, parameter in enumerate(codec.parameters):
        keys = _grow(codec, keys, level)
        later = math.prod(len(p.values) for p in codec.parameters[level + 1 :])
        for constraint in constraints:
            if binding_level(constraint, names) != level:
                continue
            holds = _holds(codec, keys, level + 1, constraint)
            if not holds.all():
                refused[constraint.code] += later * _raw_points(codec, keys[~holds], level + 1)
                keys = keys[holds]
        if len(keys) > MAX_POINTS:
            raise ValueError(
                f"more than {MAX_POINTS} points up to {parameter.name!r}: constrain the space earlier"
            )
    return Enumeration(keys, {code: count for code, count in refused.items() if count})


def _grow(codec: Codec, keys: Keys, level: int) -> Keys:
    """The prefixes `keys`, each with every value of the next parameter, or with none where it is inactive."""
    import numpy as np

    size, radix = len(codec.parameters[level].values), codec.radices[level]
    active = _activity(codec, keys, level)
    if active is None or active.all():
        product: Keys = (keys[:, None] * radix + np.arange(size)).ravel()
        return product
    counts = np.where(active, size, 1)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    digits = np.arange(len(first)) - first
    digits[np.repeat(~active, counts)] = size
    extended: Keys = np.repeat(keys * radix, counts) + digits
    return extended


def _activity(codec: Codec, keys: Keys, level: int) -> NDArray[np.bool_] | None:
    """Whether the parameter at `level` is active after each prefix; None when it always is.

    What it reads is not declared, so it is watched: while some call reads a name by which the prefixes have
    not been told apart yet, they are told apart by it too. In the end one call stands for its whole group.
    """
    import numpy as np

    parameter = codec.parameters[level]
    if parameter.active is None:
        return None
    names = [p.name for p in codec.parameters[:level]]
    reads: set[str] = set()
    while True:
        positions = [names.index(name) for name in sorted(reads)]
        representatives, group = _groups(codec, keys, positions, level)
        seen: set[str] = set()
        outcomes = []
        for values in codec.columns(representatives, range(level), level) if level else [{}]:
            visible = Visible(values, tuple(names), f"activity of {parameter.name!r}")
            outcomes.append(bool(parameter.active(_Watched(visible, seen))))
        if seen <= reads:
            return np.array(outcomes, dtype=bool)[group]
        reads |= seen


def _holds(codec: Codec, keys: Keys, bound: int, constraint: Constraint) -> NDArray[np.bool_]:
    """Whether each prefix obeys the rule."""
    import numpy as np

    names = [p.name for p in codec.parameters]
    positions = [names.index(name) for name in constraint.reads if name in names]
    representatives, group = _groups(codec, keys, positions, bound)
    outcomes = np.ones(len(representatives), dtype=bool)
    for row, values in enumerate(codec.columns(representatives, positions, bound)):
        if all(name in values for name in constraint.needs):
            outcomes[row] = bool(constraint.holds(constraint.view(values)))
    return outcomes[group]


def _groups(codec: Codec, keys: Keys, positions: Sequence[int], bound: int) -> tuple[Keys, NDArray[np.int64]]:
    """Tells prefixes apart by the parameters at `positions`: one prefix of each group, each one's group."""
    import numpy as np

    size = math.prod(codec.radices[p] for p in positions)
    codes = np.zeros(len(keys), dtype=np.int64)
    for position in positions:
        codes *= codec.radices[position]
        codes += codec.digits(keys, position, bound)
    if size > 4 * len(keys) + 1024:  # a table would be mostly empty
        _, first, group = np.unique(codes, return_index=True, return_inverse=True)
        return keys[first], group
    table = np.full(size, -1, dtype=np.int64)
    table[codes] = np.arange(len(keys))
    used = np.flatnonzero(table >= 0)
    first = table[used]
    table[used] = np.arange(len(used))
    return keys[first], table[codes]


def _raw_points(codec: Codec, keys: Keys, bound: int) -> int:
    """How many points of the product of the first `bound` parameters these canonical prefixes stand for."""
    import numpy as np

    weights = np.ones(len(keys), dtype=np.int64)
    for position, parameter in enumerate(codec.parameters[:bound]):
        if parameter.active is not None:
            size = len(parameter.values)
            weights *= np.where(codec.digits(keys, position, bound) == size, size, 1)
    return int(weights.sum())


class _Watched(Mapping[str, Value]):
    """A mapping that notes which names were asked for."""

    def __init__(self, values: Visible, seen: set[str]) -> None:
        self._values = values
        self._seen = seen

    def __getitem__(self, name: str) -> Value:
        self._seen.add(name)  # before reading: that a name is absent is read too
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        self._seen.update(self._values.names)
        return iter(self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)
