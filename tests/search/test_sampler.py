"""Samplers by name."""

from __future__ import annotations

import pytest

from m3gen.errors import UserError
from m3gen.search.history import History
from m3gen.search.sampler import make_sampler, sampler_names
from m3gen.testing.sampler_suite import small_space


@pytest.mark.parametrize("name", sampler_names())
def test_every_name_makes_a_sampler(name: str):
    assert len(make_sampler(name, 0).ask(small_space(), History(), 2)) == 2


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="unknown sampler 'tpee': did you mean tpe"):
        make_sampler("tpee", 0)
