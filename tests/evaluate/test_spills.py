"""What spills and is not predicted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from m3gen.evaluate.spills import MOST_SPILLS, spilling
from tests.store.samples import facts


@pytest.mark.parametrize(
    ("arch", "spills", "said"),
    [("sm_90", MOST_SPILLS, ""), ("sm_100", 435, "435 loads and stores"), ("gfx942", 435, "")],
)
def test_kernels_for_nvidia_that_spill_more_than_a_little_are_not_predicted(
    arch: str, spills: int, said: str
) -> None:
    """One with 435 spill instructions was once the predicted winner of its problem."""
    clean = replace(facts(), arch=arch, vector_spills=0)
    assert spilling([clean]) == ""
    found = spilling([clean, replace(clean, vector_spills=spills)])
    assert found.startswith(said)
    assert bool(found) == bool(said)
