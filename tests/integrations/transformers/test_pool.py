"""Pages go to the sequences that grow and come back from those that shrink."""

from __future__ import annotations

import pytest
import torch

from m3gen.errors import UserError
from m3gen.integrations.transformers.pool import PagePool


def pool(order: torch.Generator | None = None) -> PagePool:
    return PagePool(5, 128, 2, 4, torch.device("cpu"), order)


def test_pages_are_given_in_order_as_sequences_grow() -> None:
    pages = pool()
    pages.grow([129, 1])
    pages.grow([256, 129])
    assert pages.block_table.tolist() == [[0, 1, 0, 0], [2, 3, 0, 0]]
    assert pages.free == (4,)


def test_or_in_the_order_that_is_drawn() -> None:
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(5, generator=generator).tolist()
    pages = pool(torch.Generator().manual_seed(0))
    pages.grow([512])
    assert pages.block_table[0].tolist() == order[:4] != sorted(order[:4])


def test_nothing_is_given_when_pages_lack() -> None:
    pages = pool()
    pages.grow([128])
    with pytest.raises(UserError, match=r"5 more pages of 128 tokens are needed and 4 of 5 are free"):
        pages.grow([512, 200])
    assert len(pages.free) == 4
    assert pages.block_table.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0]]


def test_pages_that_are_not_needed_are_free_again() -> None:
    pages = pool()
    pages.grow([300, 128])
    assert sorted(pages.shrink([128])) == [1, 2, 3]
    assert pages.block_table.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0]]
    pages.grow([129, 1])
    assert sorted(pages.free + tuple(pages.block_table[[0, 0, 1], [0, 1, 0]].tolist())) == [0, 1, 2, 3, 4]


def test_a_slot_is_a_page_and_an_offset() -> None:
    pages = pool()
    pages.grow([128, 256])
    pages.grow([129, 256])
    assert pages.slots(torch.tensor([[127, 128], [0, 255]])).tolist() == [[127, 384], [128, 383]]
