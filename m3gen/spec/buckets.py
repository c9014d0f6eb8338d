"""Buckets of the load: a tuned row serves every load that rounds up to it."""

from __future__ import annotations

from collections.abc import Sequence

ROW_BUCKETS: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
CONTEXT_BUCKETS: tuple[int, ...] = tuple(1024 << i for i in range(11))  # 1K to 1M tokens


def bucket(value: int, edges: Sequence[int]) -> int:
    """The smallest edge at or above `value`; `ValueError` when `value` is under 1 or over the last edge."""
    if value < 1:
        raise ValueError(f"{value} is not a load: expected 1 or more")
    for edge in edges:
        if value <= edge:
            return edge
    raise ValueError(f"{value} is over the last bucket {edges[-1]}: expected {edges[-1]} or less")
