"""`structures`: a config with another structure, parameter by parameter."""

from __future__ import annotations

from collections.abc import Iterator

from m3gen.search.neighbours import fitted
from m3gen.space import Choice, Config, Space


def structures(config: Config, space: Space) -> Iterator[Config]:
    """The config with one choice made otherwise, where that decides which other parameters there are: one launch or
    two, the matrix unit or the vector unit. Parameters that come to be are as by default.

    Few evaluations seldom get from one structure to another by themselves: 46 of `index_select` on gfx942 all had the
    two launches of its default, where one launch is 1.2 times as fast under one row of 8,192 tokens (predict-amd-4).
    """
    for parameter in space.parameters:
        if not isinstance(parameter, Choice) or parameter.name not in config:
            continue
        for value in parameter.values:
            other = fitted(Config({**config, parameter.name: value}), space)
            if other is not None and other.keys() != config.keys():
                yield other
