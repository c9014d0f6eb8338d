"""Lists of values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from m3gen.cli.options import integers, split

numbers = st.lists(st.integers(1, 10**6), min_size=1)


@given(numbers, st.data())
def test_commas_and_repetition_mean_the_same(values: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    parts = [part for part in (values[:cut], values[cut:]) if part]
    spelled = [", ".join(map(str, part)) for part in parts]
    assert integers("--rows", spelled) == tuple(dict.fromkeys(values))


def test_nothing_given_is_the_default() -> None:
    assert integers("--rows", None, (1, 2)) == (1, 2)
    assert split(None) == ()
