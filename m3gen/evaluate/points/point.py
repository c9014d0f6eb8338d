"""`Point`: a published time and the sum of op times that it is. `Order` and `Choice`: what else can be checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from m3gen.space import Config

TOLERANCE = 0.30  # of a published time; a prediction further off than that misses it


class Split(StrEnum):
    """Whether a constant of the model was fitted on a point."""

    FIT = "fit"
    HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One op under one load, added to a sum (`sign` 1) or taken from it (-1).

    `kv` and `kv_scale` are what the op's cache holds: for the indexer the index keys. `rows` and `context` need be
    no buckets. `config` holds what differs from what the field hard-codes for this load: empty for the field's.
    """

    op: str
    tp: int
    rows: int
    context: int
    kv: str = "bf16"
    kv_scale: str = "none"
    query_len: int = 1
    config: Config = field(default_factory=lambda: Config({}))
    sign: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """`published_us` holds one time, or several of the same. `context_only` says why the point is shown and not
    judged; it is empty for one that is. Points of one `group` are ranked among each other."""

    id: str
    group: str
    device: str
    source: str
    what: str
    published_us: tuple[float, ...]
    terms: tuple[Term, ...]
    tolerance: float = TOLERANCE
    split: Split = Split.HELD_OUT
    context_only: str = ""

    @property
    def microseconds(self) -> float:
        """The published time; of several the geometric mean."""
        if len(self.published_us) == 1:
            return self.published_us[0]
        return math.exp(sum(map(math.log, self.published_us)) / len(self.published_us))


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Two points of which one was published as slower: predictions must say so too."""

    what: str
    slower: Point
    faster: Point

    @property
    def ratio(self) -> float:
        """Published, slower over faster: over 1."""
        return self.slower.microseconds / self.faster.microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A value that somebody ships, tuned on the device: among its `alternatives` it should be predicted fastest.

    `term` is the op with everything else as shipped; `parameter` takes `shipped` and each of `alternatives`, of
    which `shipped` is one.
    """

    id: str
    device: str
    source: str
    what: str
    term: Term
    parameter: str
    shipped: int | str
    alternatives: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class PointSet:
    """All that a file holds, or several."""

    points: tuple[Point, ...] = ()
    orders: tuple[Order, ...] = ()
    choices: tuple[Choice, ...] = ()

    def __add__(self, other: PointSet) -> PointSet:
        return PointSet(self.points + other.points, self.orders + other.orders, self.choices + other.choices)
