"""`Parameter`: one tunable. Its kind is a class that knows which values lie beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from m3gen.space.config import Value

Activity = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tunable with its legal values, in the order in which a space enumerates them.

    `active` decides from the parameters declared before this one whether it exists at all (None: always); an
    inactive parameter among them is absent from the mapping. It must be pure: a space calls it once per
    distinct combination of what it reads. `ValueError` when values repeat or the default is none of them.
    """

    name: str
    values: tuple[Value, ...]
    default: Value
    active: Activity | None = None
    doc: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"{self.name!r} is no parameter name: expected an identifier")
        if not self.values:
            raise ValueError(f"{self.name}: no values")
        if len({(type(v), v) for v in self.values}) < len(self.values):
            raise ValueError(f"{self.name}: values repeat in {self.values}")
        self.index(self.default)

    def index(self, value: object) -> int:
        """Position of `value`, its type included (True is not 1); `ValueError` naming the legal ones."""
        for position, legal in enumerate(self.values):
            if type(legal) is type(value) and legal == value:
                return position
        raise ValueError(f"{self.name}={value!r}: expected one of {', '.join(map(repr, self.values))}")

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """The values one step away from `value`: every other one, as no order is known."""
        here = self.index(value)
        return self.values[:here] + self.values[here + 1 :]


@dataclass(frozen=True, slots=True)
class Choice(Parameter):
    """One of several values without an order."""


@dataclass(frozen=True, slots=True)
class Ordinal(Parameter):
    """One of several values in their natural order: a step goes to the value just before or after."""

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        here = self.index(value)
        return self.values[max(0, here - 1) : here] + self.values[here + 1 : here + 2]


@dataclass(frozen=True, slots=True, init=False)
class PowerOfTwo(Ordinal):
    """The powers of two from `low` to `high`, both included; `ValueError` when an end is no power of two."""

    def __init__(
        self, name: str, low: int, high: int, default: int, active: Activity | None = None, doc: str = ""
    ) -> None:
        for end in (low, high):
            if end < 1 or end & (end - 1):
                raise ValueError(f"{name}: {end} is no power of two")
        values = tuple(1 << bit for bit in range(low.bit_length() - 1, high.bit_length()))
        Ordinal.__init__(self, name, values, default, active, doc)


@dataclass(frozen=True, slots=True, init=False)
class Flag(Parameter):
    """False or True."""

    def __init__(self, name: str, default: bool, active: Activity | None = None, doc: str = "") -> None:
        Parameter.__init__(self, name, (False, True), default, active, doc)
