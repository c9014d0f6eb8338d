"""`Outcome`: what the runs of every sampler came to, per space and over all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from m3gen.replay.runs import Ran


@dataclass(frozen=True, slots=True)
class Cell:
    """Runs of one sampler on one space (with one sibling): mean score, its standard error, the share of runs
    within 5 % of the optimum at the end, mean seconds a run."""

    space: str
    sampler: str
    sibling: str
    runs: int
    score: float
    error: float
    within: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """`error` of a mean over spaces is that of its cells' means: what other seeds would change, not what other
    spaces would."""

    cells: tuple[Cell, ...]

    @property
    def spaces(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.space for cell in self.cells))

    @property
    def samplers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.sampler for cell in self.cells))

    def of(self, sampler: str, space: str | None = None) -> Cell:
        """A sampler's cells made one: those of a space, or of all spaces, every cell counting alike."""
        cells = [c for c in self.cells if c.sampler == sampler and space in (None, c.space)]
        return Cell(
            space=space or "",
            sampler=sampler,
            sibling=cells[0].sibling if len(cells) == 1 else "",
            runs=sum(cell.runs for cell in cells),
            score=statistics.fmean(cell.score for cell in cells),
            error=math.hypot(*(cell.error for cell in cells)) / len(cells),
            within=statistics.fmean(cell.within for cell in cells),
            seconds=statistics.fmean(cell.seconds for cell in cells),
        )


def outcome(ran: Iterable[Ran], name: dict[str, str]) -> Outcome:
    """`name`: what the space in a file is called, by the file's path."""
    groups: dict[tuple[str, str, str], list[Ran]] = {}
    for one in ran:
        sibling = "" if one.run.sibling is None else name[str(one.run.sibling)]
        groups.setdefault((name[str(one.run.path)], one.run.sampler, sibling), []).append(one)
    return Outcome(tuple(_cell(*key, runs) for key, runs in groups.items()))


def _cell(space: str, sampler: str, sibling: str, runs: Sequence[Ran]) -> Cell:
    scores = [one.scored.score for one in runs]
    return Cell(
        space=space,
        sampler=sampler,
        sibling=sibling,
        runs=len(runs),
        score=statistics.fmean(scores),
        error=statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan,
        within=statistics.fmean(one.scored.hit for one in runs),
        seconds=statistics.fmean(one.seconds for one in runs),
    )
