"""A step as an engine states it, and the reasons for which the stock path runs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import torch


class GraphMode(Enum):
    """How the engine runs the step: kernel by kernel, or as one graph captured whole."""

    NONE = "none"
    FULL = "full"


class Reason(IntEnum):
    """Why the stock path runs a step; `NONE` when the specialised one does. Decided from host integers that all
    ranks share, so all ranks decide alike."""

    NONE = 0
    CLOSED = 1
    NO_CACHE = 2
    UNHEALTHY = 3
    NO_DECODE = 4
    QUERY_LEN = 5
    TOO_MANY_REQUESTS = 6
    TOO_LONG = 7
    GRAPH = 8

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Reason.NONE: "the specialised kernels run",
    Reason.CLOSED: "the state is closed",
    Reason.NO_CACHE: "no KV cache is bound",
    Reason.UNHEALTHY: "an earlier step left an error word",
    Reason.NO_DECODE: "the step has no decode request",
    Reason.QUERY_LEN: "no kernel is bound for this query length",
    Reason.TOO_MANY_REQUESTS: "more decode requests than max_requests",
    Reason.TOO_LONG: "a sequence is longer than the score buffer",
    Reason.GRAPH: "a graph with prefill rows, or of a size that none is captured for",
}


@dataclass(slots=True)
class StepInputs:
    """The decode part of a step's tensors; requests come first in the batch, padding last.

    `block_table`   int32 [requests, max_blocks]; `seq_lens` int32 [requests], the query included, 0 for padding
    `positions`     int64 [rows], `slot_mapping` int64 [rows], -1 for padding: where rows are inserted
    `index_...`     those of the index cache where it has pages of its own; None: those of the main cache

    Under graph capture and replay they are the engine's buffers at fixed addresses.
    """

    block_table: torch.Tensor
    seq_lens: torch.Tensor
    positions: torch.Tensor | None = None
    slot_mapping: torch.Tensor | None = None
    index_block_table: torch.Tensor | None = None
    index_slot_mapping: torch.Tensor | None = None
