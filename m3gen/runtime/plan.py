"""`Plan`: all that one size of step needs, made before the first step: kernels, and views of their buffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from m3gen.runtime.step import Reason

Launch = Callable[..., None]


def _no_launch(reason: Reason, *arguments: Any, **keywords: Any) -> None:
    raise RuntimeError(f"nothing to launch: {reason.words}")


class Plan:
    """`specialised` says who runs the step, `reason` why it is not m3gen. `rows` = requests * query_len.

    The launches take what changes from layer to layer and step to step; everything else is in them. The buffers
    are views of the state's, at fixed addresses: `q` [rows, q_heads, head_dim], `index_q` [rows, index_heads,
    index_dim], `scores` fp32 [index_heads, rows, width], `ids` int32 [index_heads, rows, topk].
    """

    __slots__ = (
        "attend",
        "attend_all",
        "ids",
        "index_q",
        "insert",
        "q",
        "query_len",
        "reason",
        "requests",
        "rows",
        "scores",
        "select",
        "specialised",
        "steps",
        "store",
    )

    def __init__(self, reason: Reason, requests: int = 0, query_len: int = 0) -> None:
        self.reason = reason
        self.specialised = reason is Reason.NONE
        self.requests, self.query_len, self.rows = requests, query_len, requests * query_len
        self.steps = 0  # that ran by it
        self.q = self.index_q = self.scores = self.ids = torch.empty(0)
        nothing: Launch = partial(_no_launch, reason)
        self.insert = self.store = self.select = self.attend = self.attend_all = nothing

    def __repr__(self) -> str:
        if not self.specialised:
            return f"Plan(stock: {self.reason.words})"
        return f"Plan({self.requests} requests of {self.query_len})"


def bound(launcher: Launch, **fixed: Any) -> Launch:
    """A launcher with the arguments that never change."""
    return partial(launcher, **fixed)
