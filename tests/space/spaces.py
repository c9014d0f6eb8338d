"""Random small spaces for hypothesis, with rules and activities that are arbitrary but pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from m3gen.space import Choice, Constraint, Flag, Ordinal, Parameter, PowerOfTwo, Space, Value


@dataclass(frozen=True)
class Coin:
    """A pure predicate: true for about `percent` of what can be read under `names`."""

    names: tuple[str, ...]
    salt: int
    percent: int

    def __call__(self, values: Mapping[str, Value]) -> bool:
        seen = [(name, values[name]) for name in self.names if name in values]
        return zlib.crc32(repr((self.salt, seen)).encode()) % 100 < self.percent


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """One to five parameters, some conditional, and up to three rules."""
    parameters: list[Parameter] = []
    for i in range(draw(st.integers(1, 5))):
        names = [p.name for p in parameters]
        active = draw(st.none() | _coins(names)) if names else None
        kind = draw(st.sampled_from(("choice", "ordinal", "power", "flag")))
        name = f"p{i}"
        if kind == "choice":
            parameters.append(Choice(name, ("a", 1, True)[: draw(st.integers(1, 3))], "a", active))
        elif kind == "ordinal":
            parameters.append(Ordinal(name, (0, 1, 2, 5), 1, active))
        elif kind == "power":
            parameters.append(PowerOfTwo(name, 2, 8, 4, active))
        else:
            parameters.append(Flag(name, False, active))
    names = [p.name for p in parameters]
    rules = draw(st.lists(_coins(names, least=1), max_size=3))
    constraints = []
    for i, coin in enumerate(rules):
        cut = draw(st.integers(1, len(coin.names)))
        constraints.append(Constraint(f"c{i % 2}", coin.names[:cut], coin, "refused", coin.names[cut:]))
    return Space(parameters, constraints)


def _coins(names: list[str], least: int = 0) -> st.SearchStrategy[Coin]:
    picked = st.lists(st.sampled_from(names), unique=True, min_size=least, max_size=3)
    return st.builds(Coin, picked.map(tuple), st.integers(0, 99), st.sampled_from((30, 60, 90)))
