"""`Counters`: what a state has done so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from m3gen.runtime.step import Reason


@dataclass(frozen=True, slots=True)
class Counters:
    """`steps` planned, of which `specialised`; `fallbacks` by reason; `launches` by op (one per layer and step);
    `sizes`: steps by (requests, query length)."""

    steps: int
    specialised: int
    fallbacks: Mapping[Reason, int]
    launches: Mapping[str, int]
    sizes: Mapping[tuple[int, int], int]
