"""`Sampler`: what proposes the next candidates, and the samplers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from m3gen.errors import UserError
from m3gen.search.history import History
from m3gen.space import Space


class Sampler(Protocol):
    """Proposes ids of a space.

    A proposal is a function of the seed, the space and the history, and of nothing else: a sampler made anew
    goes on where another was stopped.
    """

    def ask(self, space: Space, history: History, count: int) -> list[int]:
        """At most `count` different ids that are neither observed nor pending; fewer only when no more are
        left, so that an empty list means that the space is exhausted."""
        ...


# Name -> "module:class". A class takes the seed. Modules are imported when named: Optuna takes a second.
_SAMPLERS = {
    "hybrid": "m3gen.search.hybrid:HybridSampler",
    "local": "m3gen.search.local:LocalSampler",
    "exhaustive": "m3gen.search.exhaustive:ExhaustiveSampler",
    "random": "m3gen.search.random:RandomSampler",
    "tpe": "m3gen.search.tpe:TPESampler",
}


def sampler_names() -> tuple[str, ...]:
    """The names that `make_sampler` knows."""
    return tuple(_SAMPLERS)


def make_sampler(name: str, seed: int) -> Sampler:
    """The sampler called `name`; `UserError` naming the nearest when there is none."""
    if name not in _SAMPLERS:
        near = difflib.get_close_matches(name, _SAMPLERS, 1) or list(_SAMPLERS)
        raise UserError(f"unknown sampler {name!r}: did you mean {' or '.join(near)}?")
    module, _, attribute = _SAMPLERS[name].partition(":")
    make: Callable[[int], Sampler] = getattr(import_module(module), attribute)
    return make(seed)
