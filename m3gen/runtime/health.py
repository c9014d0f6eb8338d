"""`Watch` and `Health`: in debug mode, a word on the device that any fault of any step leaves its mark in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

import torch


class Fault(IntFlag):
    """What a mark stands for."""

    OUTPUT = 1  # an output is NaN or infinite
    PAGE = 2  # a block table names a page past the cache, among the blocks of a live sequence
    SLOT = 4  # a slot lies past the cache
    LENGTH = 8  # a sequence is longer than its row of the block table, or shorter than nothing
    LIST = 16  # a list of blocks names one below -1


_WORDS = {
    Fault.OUTPUT: "an output was NaN or infinite",
    Fault.PAGE: "a block table named a page past the cache",
    Fault.SLOT: "a slot lay past the cache",
    Fault.LENGTH: "a sequence was longer than its block table, or negative",
    Fault.LIST: "a list of blocks held an id below -1",
}


@dataclass(frozen=True, slots=True)
class Health:
    """Whether every step so far was clean; what was not, in words. Without debug mode nothing is watched."""

    ok: bool
    errors: tuple[str, ...] = ()


class Watch:
    """Folds checks into one int32 on the device, without waiting for it. Faults stay until the state is closed."""

    def __init__(self, device: torch.device, page_size: int) -> None:
        self._word = torch.zeros((), dtype=torch.int32, device=device)
        self._page_size = page_size

    def inputs(
        self, block_table: torch.Tensor, seq_lens: torch.Tensor, slots: torch.Tensor | None, pages: int
    ) -> None:
        """What a step brings; `pages` of the cache it is for."""
        blocks = block_table.shape[1]
        live = -(-seq_lens.clamp_min(0) // self._page_size)
        used = torch.arange(blocks, device=block_table.device)[None, :] < live[:, None]
        self._mark(Fault.PAGE, (used & (block_table >= pages)).any())
        self._mark(Fault.LENGTH, ((seq_lens < 0) | (seq_lens > blocks * self._page_size)).any())
        if slots is not None:
            self._mark(Fault.SLOT, (slots >= pages * self._page_size).any())

    def output(self, out: torch.Tensor, ids: torch.Tensor | None) -> None:
        """What a layer leaves."""
        self._mark(Fault.OUTPUT, ~out.isfinite().all())
        if ids is not None:
            self._mark(Fault.LIST, (ids < -1).any())

    def read(self) -> Health:
        """Wait for the device, and say."""
        word = Fault(int(self._word.item()))
        errors = tuple(_WORDS[fault] for fault in Fault if fault in word)
        return Health(ok=not errors, errors=errors)

    def _mark(self, fault: Fault, seen: torch.Tensor) -> None:
        self._word.bitwise_or_(seen.to(torch.int32) * int(fault))
