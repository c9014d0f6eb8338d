"""Where a session stands: a picture for a terminal, a line for a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.report import layout, words
from m3gen.search.progress import Incumbent, Progress
from m3gen.spec import Problem

PHASES = {"search": "searching", "verify": "verifying finalists", "done": "done"}


def picture(progress: Progress, judge: str) -> RenderableType:
    """Counts, failures by reason and the best so far per problem. `judge` is the version of the predictor."""
    best = standings("best so far, verified or not", sorted(progress.best), progress.best, judge)
    return Group(layout.title(_clock(progress)), layout.pairs(_figures(progress)), Text(""), best)


def line(progress: Progress) -> str:
    """The same in one line, without the best of each problem."""
    failed = sum(progress.failed.values())
    stopped = f"{sum(progress.stopped.values())} stopped, " if progress.stopped else ""
    reasons = f" ({words.failures(progress.failed)})" if failed else ""
    return (
        f"{_clock(progress)}: {progress.evaluated} evaluated, {progress.compiled} compiled, "
        f"{progress.cached} cached, {stopped}{progress.predicted} predicted, {progress.verified} verified, "
        f"{failed} failed{reasons}"
    )


def standings(
    title: str, problems: Iterable[Problem], best: Mapping[Problem, Incumbent], judge: str
) -> RenderableType:
    """The best candidate of each problem, verified or not. `judge` is the version of the predictor."""
    cells = []
    for problem in problems:
        found = best.get(problem)
        field = found.baseline_us if found else None
        cells.append(
            (
                words.problem_line(problem),
                words.microseconds(field),
                words.microseconds(found.value_us if found else None),
                words.ratio(field / found.value_us if found and field else None),
                str(found.stage) if found else "-",
            )
        )
    columns = ("problem", ">field us", ">best us", ">ratio", "time is")
    heading = Text(f"{title}; predicted times are by {judge}")
    return Group(heading, layout.table(columns, cells, fold=("problem",)))


def _clock(progress: Progress) -> str:
    left = "" if progress.remaining_s is None else f", at most {words.duration(progress.remaining_s)} left"
    return f"{PHASES[progress.phase]}, {words.duration(progress.elapsed_s)}{left}"


def _figures(progress: Progress) -> list[tuple[str, str]]:
    known = f" ({progress.stored:,} from the store)" if progress.stored else ""
    return [
        ("refused by rule", f"{sum(progress.refused.values()):,} of the raw points, before any work"),
        ("evaluated", f"{progress.evaluated:,}{known}"),
        ("kernels", f"{progress.compiled:,} compiled, {progress.cached:,} cached"),
        ("stopped early", words.stopped(progress.stopped)),
        ("predicted", f"{progress.predicted:,}"),
        ("verified", f"{progress.verified:,}"),
        ("failed", words.failures(progress.failed)),
    ]
