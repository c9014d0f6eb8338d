"""`History`: all that a sampler may know of one problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from m3gen.search.prior import NOTHING_KNOWN, Prior


@dataclass(frozen=True, slots=True)
class History:
    """`observed`: microseconds by id in the order in which they became known, None for a failed candidate.

    `pending`: ids that are being evaluated. Both exclude what may be asked next. `prior`: what was known before.
    """

    observed: Mapping[int, float | None] = field(default_factory=dict)
    pending: Collection[int] = ()
    prior: Prior = NOTHING_KNOWN

    @property
    def taken(self) -> set[int]:
        """Ids that must not be asked again."""
        return {*self.observed, *self.pending}
