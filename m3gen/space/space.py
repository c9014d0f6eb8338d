"""`Space`: the valid configs of one op on one problem, each with an id; all else is algebra over ids."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from m3gen.space.codec import Codec
from m3gen.space.config import Config, Value
from m3gen.space.constraint import Constraint, Violation, Visible
from m3gen.space.enumeration import Enumeration, binding_level, enumerate_space
from m3gen.space.parameter import Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Space:
    """Ids are 0 to len(space) - 1, in the order of declaration with the last parameter fastest.

    The valid points are enumerated once, when first asked for. `ValueError` when names repeat or a rule
    reads a parameter that is not there.
    """

    def __init__(self, parameters: Sequence[Parameter], constraints: Sequence[Constraint] = ()) -> None:
        self.parameters = tuple(parameters)
        self._by_name = {p.name: p for p in self.parameters}
        if len(self._by_name) < len(self.parameters):
            raise ValueError("two parameters of one space share a name")
        names = list(self._by_name)
        # In the order in which they can be decided: the first one violated is the one that cuts a point.
        self.constraints = tuple(sorted(constraints, key=lambda c: binding_level(c, names)))
        self._codec = Codec(self.parameters)

    @cached_property
    def _points(self) -> Enumeration:
        return enumerate_space(self._codec, self.constraints)

    @property
    def raw_size(self) -> int:
        """Points of the full product, before activity and constraints."""
        return math.prod(len(p.values) for p in self.parameters)

    @property
    def refused(self) -> Mapping[str, int]:
        """Raw points that a rule refuses, by the code of the first rule they violate."""
        return self._points.refused

    @cached_property
    def sha(self) -> str:
        """SHA-256 over names, values and the valid points, activity included: 64 hex digits."""
        declared = json.dumps([[p.name, list(p.values)] for p in self.parameters])
        points = self._points.keys.astype("<i8").tobytes()
        return hashlib.sha256(declared.encode() + points).hexdigest()

    def __len__(self) -> int:
        return len(self._points.keys)

    def __iter__(self) -> Iterator[Config]:
        return (self.config(id) for id in range(len(self)))

    @cached_property
    def positions(self) -> NDArray[np.int16]:
        """A row per id, a column per parameter: the position of its value, one past the last when inactive."""
        import numpy as np

        found = np.empty((len(self), len(self.parameters)), dtype=np.int16)
        for column in range(len(self.parameters)):
            found[:, column] = self._codec.digits(self._points.keys, column, len(self.parameters))
        return found

    def __contains__(self, config: object) -> bool:
        return isinstance(config, Mapping) and self._find(config) is not None

    def config(self, id: int) -> Config:
        """The config of an id; `IndexError` outside 0 to len(space) - 1."""
        if not 0 <= id < len(self):
            raise IndexError(f"id {id} is outside a space of {len(self)} configs")
        return Config(self._codec.decode(int(self._points.keys[id])))

    def id(self, config: Mapping[str, Value]) -> int:
        """The id of a config; `KeyError` when it is not canonical or not valid here."""
        found = self._find(config)
        if found is None:
            raise KeyError(config)
        return found

    def _find(self, config: Mapping[str, Value]) -> int | None:
        try:
            key = self._codec.encode(config)
        except ValueError:
            return None
        position = int(self._points.keys.searchsorted(key))
        return position if position < len(self) and self._points.keys[position] == key else None

    def canonical_of_known(self, values: Mapping[str, Value]) -> Config:
        """`canonical` of those values whose parameters this space has; the others are left out, not refused."""
        return self.canonical({p.name: values[p.name] for p in self.parameters if p.name in values})

    def canonical(self, values: Mapping[str, Value]) -> Config:
        """`values` without what is inactive; rules are not looked at.

        `ValueError` on an unknown name, an illegal value, or an active parameter without a value.
        """
        for name, value in values.items():
            self._parameter(name).index(value)
        bound: dict[str, Value] = {}
        for level, parameter in enumerate(self.parameters):
            if self._active(level, bound):
                if parameter.name not in values:
                    raise ValueError(f"{parameter.name} is missing: expected one of {parameter.values}")
                bound[parameter.name] = values[parameter.name]
        return Config(bound)

    def violations(self, values: Mapping[str, Value]) -> tuple[Violation, ...]:
        """Every rule that `values` break, first the one that `refused` counts; errors as in `canonical`."""
        config = self.canonical(values)
        found = (constraint.violation(config) for constraint in self.constraints)
        return tuple(violation for violation in found if violation is not None)

    def default(self) -> Config:
        """The parameters' defaults; `ValueError` when together they break a rule."""
        config = self.canonical({p.name: p.default for p in self.parameters})
        if broken := self.violations(config):
            raise ValueError(f"the default {config!r} breaks {broken[0].code!r}: {broken[0].reason}")
        return config

    def neighbours(self, id: int) -> tuple[int, ...]:
        """The ids that differ from `id` in one parameter which both have, in any way, ascending.

        What this one parameter switches on may take any value, so neighbours are mutual.
        """
        config = self.config(id)
        return self._moves(config, {p.name: Parameter.neighbours(p, config[p.name]) for p in self._held(config)})

    def adjacent(self, id: int) -> tuple[int, ...]:
        """The neighbours that are one step away: the next value up or down where values have an order."""
        config = self.config(id)
        return self._moves(config, {p.name: p.neighbours(config[p.name]) for p in self._held(config)})

    def _held(self, config: Config) -> list[Parameter]:
        return [p for p in self.parameters if p.name in config]

    def _moves(self, config: Config, steps: Mapping[str, Sequence[Value]]) -> tuple[int, ...]:
        found = set()
        for level, parameter in enumerate(self.parameters):
            for value in steps.get(parameter.name, ()):
                earlier = {p.name: config[p.name] for p in self.parameters[:level] if p.name in config}
                for moved in self._completions(level + 1, {**earlier, parameter.name: value}, config):
                    if (id := self._find(moved)) is not None:
                        found.add(id)
        return tuple(sorted(found))

    def _completions(self, level: int, bound: dict[str, Value], base: Config) -> Iterator[dict[str, Value]]:
        """`bound` continued from `level` as in `base`, and in every way where `base` says nothing."""
        if level == len(self.parameters):
            yield bound
            return
        parameter = self.parameters[level]
        if not self._active(level, bound):
            yield from self._completions(level + 1, bound, base)
            return
        for value in (base[parameter.name],) if parameter.name in base else parameter.values:
            yield from self._completions(level + 1, {**bound, parameter.name: value}, base)

    def _active(self, level: int, bound: Mapping[str, Value]) -> bool:
        """Whether the parameter at `level` is active after the active ones before it."""
        parameter = self.parameters[level]
        if parameter.active is None:
            return True
        names = tuple(p.name for p in self.parameters[:level])
        return bool(parameter.active(Visible(bound, names, f"activity of {parameter.name!r}")))

    def _parameter(self, name: str) -> Parameter:
        try:
            return self._by_name[name]
        except KeyError:
            near = difflib.get_close_matches(name, self._by_name, 3, 0.5) or list(self._by_name)
            raise ValueError(f"unknown parameter {name!r}: did you mean {', '.join(near)}?") from None
