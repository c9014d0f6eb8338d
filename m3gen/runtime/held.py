"""`Held`: what a state lets go of at the end. The finaliser holds this, never the state."""

from __future__ import annotations

import logging

from m3gen.runtime.binding import CacheBinding
from m3gen.runtime.layer import DecodeLayer, Now
from m3gen.runtime.plan import Plan
from m3gen.runtime.plans import Buffers, Chosen, make_plans
from m3gen.runtime.settings import Settings
from m3gen.runtime.step import Reason

_log = logging.getLogger(__name__)


class Held:
    """Buffers and plans, and of the cache that is bound the views and the layers over them.

    `plans[query_len][requests]`, None for a query length without kernels; `width` of score rows, in blocks.
    """

    def __init__(self, settings: Settings, chosen: Chosen) -> None:
        self.binding: CacheBinding | None = None
        self.layers: dict[int, DecodeLayer] = {}
        self.make(settings, chosen)

    def make(self, settings: Settings, chosen: Chosen) -> None:
        """Buffers for the longest sequence that there is now, and the plans over them."""
        buffers = Buffers(settings, chosen)
        self.plans: list[list[Plan] | None] = make_plans(settings, chosen, buffers)
        self.width = buffers.width
        self.max_tokens = buffers.width * settings.spec.page_size

    def plan(self, query_len: int, requests: int) -> Plan:
        of_length = self.plans[query_len]
        if of_length is None:
            raise KeyError(f"no plans for the query length {query_len}")
        return of_length[requests]

    def drop_binding(self) -> None:
        """No view of the cache stays, not even in a layer that the engine keeps."""
        for layer in self.layers.values():
            layer.expire()
        self.layers = {}
        self.binding = None


def release(held: Held, now: Now) -> None:
    """Let go of everything: what `ModelState.close` and its finaliser do, once."""
    held.drop_binding()
    held.plans = []
    now.drop(Plan(Reason.CLOSED))
    _log.info("model state closed")
