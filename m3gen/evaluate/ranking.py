"""Which of several candidates is the better one: the only place that says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import groupby
from typing import TypeVar

from m3gen.evaluate.evaluation import Evaluation, Stage

# Predictions closer than this are a tie. Much of their interval is an error that all candidates of one op
# share, so the interval alone would call a clearly slower candidate a tie.
TIE = 0.02

K = TypeVar("K", bound=Hashable)


def ranked(evaluations: Mapping[K, Evaluation], registers: Callable[[str], int | None]) -> Iterator[K]:
    """Candidates of one problem that one judge found OK at one stage, by their evaluations, the best first.

    Predicted times within one step of `TIE` are a tie. The baseline (`environment["baseline"]`) stands against
    what does not clearly beat it; else the candidate with the fewest registers in any launch goes first, then the
    one with the fewest launches, then the faster, then the simpler, then the one that `evaluations` has first. The
    simpler one has fewer `environment["departures"]`, values that are not the baseline's: that decides where machine
    code is the same. Measured times do not tie. `registers` of a launch by the key of its facts, None if they are
    not known; it is asked for ties alone, and only as far as the order is followed.

    Steps have fixed edges, so that the order of two candidates does not depend on a third: the first verified
    one of all is the first one of the verified. A tie across an edge goes to the faster candidate.
    """

    def frugality(candidate: K) -> tuple[bool, int, int, float, int]:
        evaluation = evaluations[candidate]
        known = [found for key in evaluation.facts if (found := registers(key)) is not None]
        stands = bool(evaluation.environment.get("baseline"))
        departures = evaluation.environment.get("departures", 0)
        return not stands, max(known, default=0), len(known), _time(evaluation), departures

    def step(candidate: K) -> float:
        return _step(evaluations[candidate])

    for _, tied in groupby(sorted(evaluations, key=step), key=step):
        candidates = list(tied)
        yield from sorted(candidates, key=frugality) if candidates[1:] else candidates


def _step(evaluation: Evaluation) -> float:
    """Equal for times that tie, larger for longer ones."""
    time = _time(evaluation)
    return time if evaluation.stage is Stage.MEASURED else math.floor(math.log(time) / math.log1p(TIE))


def _time(evaluation: Evaluation) -> float:
    assert evaluation.value_us is not None  # every OK evaluation has a time over zero
    return evaluation.value_us
