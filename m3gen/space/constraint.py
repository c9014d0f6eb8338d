"""`Constraint`: a rule that refuses points of a space, with a code to count by and a reason to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from m3gen.space.config import Value


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a point breaks."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """A point is legal only where `holds` is true.

    `needs` are the parameters the rule reads; it is skipped where one of them is inactive. `optional` are
    those it reads where they are active and does without elsewhere, also in a space that lacks them. `holds`
    and `reason` get a mapping of exactly these names, and reading any other is a `ValueError`: the space
    applies a rule as soon as its names are bound. `holds` must be pure: it is called once per distinct
    combination of what it reads.
    """

    code: str
    needs: tuple[str, ...]
    holds: Callable[[Mapping[str, Any]], bool]
    reason: str | Callable[[Mapping[str, Any]], str]
    optional: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.needs:
            raise ValueError(f"constraint {self.code!r} needs no parameter")

    @property
    def reads(self) -> tuple[str, ...]:
        """Every parameter it may look at."""
        return self.needs + self.optional

    def violation(self, values: Mapping[str, Value]) -> Violation | None:
        """What the active parameters `values` break, if anything."""
        if not all(name in values for name in self.needs):
            return None
        seen = self.view({name: values[name] for name in self.reads if name in values})
        if self.holds(seen):
            return None
        return Violation(self.code, self.reason if isinstance(self.reason, str) else self.reason(seen))

    def view(self, values: Mapping[str, Value]) -> Visible:
        """`values` as `holds` may see them."""
        return Visible(values, self.reads, f"constraint {self.code!r}")


class Visible(dict[str, Value]):
    """The values of some parameters. Asking for a name outside `names` is an error of whoever wrote the rule:
    a `ValueError`, so that `get` and `in` cannot hide it, where an absent name inside is merely inactive."""

    __slots__ = ("_reader", "names")

    def __init__(self, values: Mapping[str, Value], names: tuple[str, ...], reader: str) -> None:
        super().__init__(values)
        self.names = names
        self._reader = reader

    def __missing__(self, name: str) -> Value:
        self._allow(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        self._allow(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._allow(name)
        return super().get(name, default)

    def _allow(self, name: object) -> None:
        if name not in self.names:
            raise ValueError(f"{self._reader} reads {name!r}, which is not among {', '.join(self.names)}")
