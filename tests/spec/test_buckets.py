"""Buckets: the smallest edge that serves a load."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3, ROW_BUCKETS, bucket


@pytest.mark.parametrize("edges", [ROW_BUCKETS, CONTEXT_BUCKETS])
def test_edges_double(edges: tuple[int, ...]) -> None:
    assert all(high == 2 * low for low, high in pairwise(edges))


def test_edges_span_what_is_served() -> None:
    assert (ROW_BUCKETS[0], ROW_BUCKETS[-1]) == (1, 512)
    assert (CONTEXT_BUCKETS[0], CONTEXT_BUCKETS[-1]) == (1024, MINIMAX_M3.max_position)


@given(st.integers(1, 512))
def test_the_smallest_edge_at_or_above(value: int) -> None:
    edge = bucket(value, ROW_BUCKETS)
    assert edge in ROW_BUCKETS
    assert edge >= value
    assert all(smaller < value for smaller in ROW_BUCKETS if smaller < edge)


@pytest.mark.parametrize("value", [0, -1])
def test_no_load_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        bucket(value, ROW_BUCKETS)


def test_a_load_over_the_last_edge_is_refused() -> None:
    with pytest.raises(ValueError, match="513 is over the last bucket 512"):
        bucket(513, ROW_BUCKETS)
