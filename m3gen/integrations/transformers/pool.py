"""`PagePool`: which pages belong to which sequence, and the block table that says so."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from m3gen.errors import UserError


class PagePool:
    """Pages of `page_size` tokens, handed to the sequences of a batch as they grow.

    `block_table` int32 [max_batch, max_blocks]: the pages of each sequence in order, 0 past its end. Pages are
    handed out in ascending order, or in one drawn from `order`, a generator of the CPU.
    """

    def __init__(
        self,
        pages: int,
        page_size: int,
        max_batch: int,
        max_blocks: int,
        device: torch.device,
        order: torch.Generator | None = None,
    ) -> None:
        self.pages = pages
        self.page_size = page_size
        self.block_table = torch.zeros(max_batch, max_blocks, dtype=torch.int32, device=device)
        self._held: list[list[int]] = [[] for _ in range(max_batch)]
        ids = torch.arange(pages) if order is None else torch.randperm(pages, generator=order)
        self._free = ids.flip(0).tolist()

    @property
    def free(self) -> tuple[int, ...]:
        """The pages that belong to nobody."""
        return tuple(self._free)

    def grow(self, tokens: Sequence[int]) -> None:
        """Give the first sequences room for `tokens` each; `UserError`, and nothing given, when pages lack."""
        wanted = [self._blocks(count) - len(held) for count, held in zip(tokens, self._held, strict=False)]
        missing = sum(max(0, count) for count in wanted)
        if missing > len(self._free):
            raise UserError(
                f"{missing} more pages of {self.page_size} tokens are needed and {len(self._free)} of "
                f"{self.pages} are free: make the cache with pages={self.pages + missing - len(self._free)} or more"
            )
        for row, count in enumerate(wanted):
            if count > 0:
                held, given = self._held[row], [self._free.pop() for _ in range(count)]
                self.block_table[row, len(held) : len(held) + count] = torch.tensor(given)
                held += given

    def shrink(self, tokens: Sequence[int]) -> list[int]:
        """Take back what the first sequences do not need for `tokens` each, and all pages of the others."""
        freed: list[int] = []
        for row, held in enumerate(self._held):
            kept = self._blocks(tokens[row]) if row < len(tokens) else 0
            freed += reversed(held[kept:])
            del held[kept:]
            self.block_table[row, kept:] = 0
        self._free += freed
        return freed

    def slots(self, positions: torch.Tensor) -> torch.Tensor:
        """Where the tokens at `positions` int64 [batch, query_len] lie: page * page_size + offset, same shape."""
        table = self.block_table[: len(positions)].long()
        return table.gather(1, positions // self.page_size) * self.page_size + positions % self.page_size

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.page_size)
