"""Powers of two around a number: one place for all ops."""

from __future__ import annotations

from m3gen.ops.powers import power_of_two_at_least, power_of_two_at_most


def test_they_bracket_every_number() -> None:
    for value in range(1, 1025):
        least, most = power_of_two_at_least(value), power_of_two_at_most(value)
        assert most <= value <= least
        assert least == (most if most == value else 2 * most)
        assert most.bit_count() == least.bit_count() == 1
