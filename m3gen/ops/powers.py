"""Powers of two around a number."""

from __future__ import annotations


def power_of_two_at_most(value: int) -> int:
    """The largest power of two that is no more than `value`, which is 1 or more."""
    return 1 << (value.bit_length() - 1)


def power_of_two_at_least(value: int) -> int:
    """The smallest power of two that is no less than `value`, which is 1 or more."""
    return 1 << (value - 1).bit_length()
