"""`Prior`: what is known of related problems before the first evaluation of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from m3gen.space import Config


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What may warm a search up; neither part has to fit the space, and what does not is passed over.

    `seeds`: configs worth trying first, the most trusted first: the shipped row, the field's default, the best
    of the nearest problems, the best of the sibling arch of the same vendor. Five at most are tried.
    `siblings`: evaluations of related problems and archs, the most related first, each as microseconds by
    config, None for a failed candidate. Only the order within one sibling is made use of, so their loads,
    clocks and judges may differ. A prior must not change between two calls of one search: build it once.
    """

    seeds: tuple[Config, ...] = ()
    siblings: tuple[Mapping[Config, float | None], ...] = ()


NOTHING_KNOWN = Prior()
