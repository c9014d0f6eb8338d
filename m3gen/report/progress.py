"""Where a session stands: a picture for a terminal, a line for a log."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from m3gen.evaluate.evaluation import Stage
from m3gen.report import words
from m3gen.search.progress import Incumbent, Progress

PHASES = {"search": "searching", "verify": "verifying finalists", "done": "done"}


def picture(progress: Progress, judge: str) -> RenderableType:
    """Counts, failures by reason and the best so far per problem. `judge` is the version of the predictor."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for name, figure in _figures(progress):
        table.add_row(Text(name, style="dim"), Text(figure))
    return Group(Text(_clock(progress), style="bold"), table, _best(progress, judge))


def line(progress: Progress) -> str:
    """The same in one line, without the best of each problem."""
    failed = sum(progress.failed.values())
    reasons = f" ({words.failures(progress.failed)})" if failed else ""
    return (
        f"{_clock(progress)}: {progress.evaluated} evaluated, {progress.compiled} compiled, "
        f"{progress.cached} cached, {progress.predicted} predicted, {progress.verified} verified, "
        f"{failed} failed{reasons}"
    )


def _clock(progress: Progress) -> str:
    left = "" if progress.remaining_s is None else f", at most {words.duration(progress.remaining_s)} left"
    return f"{PHASES[progress.phase]}, {words.duration(progress.elapsed_s)}{left}"


def _figures(progress: Progress) -> list[tuple[str, str]]:
    known = f" ({progress.stored:,} from the store)" if progress.stored else ""
    return [
        ("refused by rule", f"{sum(progress.refused.values()):,} of the raw points, before any work"),
        ("evaluated", f"{progress.evaluated:,}{known}"),
        ("kernels", f"{progress.compiled:,} compiled, {progress.cached:,} cached"),
        ("predicted", f"{progress.predicted:,}"),
        ("verified", f"{progress.verified:,}"),
        ("failed", words.failures(progress.failed)),
    ]


def _best(progress: Progress, judge: str) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("best so far, verified or not", no_wrap=True)
    for name in ("default us", "best us", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("judged by")
    for problem, best in sorted(progress.best.items()):
        table.add_row(
            Text(words.problem_line(problem)),
            words.microseconds(best.baseline_us),
            words.microseconds(best.value_us),
            words.ratio(best.baseline_us / best.value_us if best.baseline_us else None),
            _authority(best, judge),
        )
    return table


def _authority(best: Incumbent, judge: str) -> str:
    return "measured" if best.stage is Stage.MEASURED else f"{best.stage}, {judge}"
