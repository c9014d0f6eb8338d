"""What came of a session: for a terminal, and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.report import layout, machine, words
from m3gen.report.progress import standings
from m3gen.report.winners import winners
from m3gen.search.result import SessionResult
from m3gen.spec import Problem
from m3gen.targets import Device

_ENDED = {
    "budget": "the budget is spent",
    "exhausted": "every candidate has been evaluated",
    "interrupted": "interrupted: what is known is kept, finalists not yet verified are not listed",
    "nothing to do": "everything was known from the store",
}


def session(
    result: SessionResult,
    device: Device,
    without: Sequence[Problem],
    store: str,
    tables: Sequence[Path] = (),
    modules: Sequence[Path] = (),
) -> RenderableType:
    """The winners, the problems `without` one, where everything went, and the counts; fits 80 columns."""
    parts: list[RenderableType] = [winners(result.rows, device.name)] if result.rows else []
    if without:
        title = "No verified winner yet; the best so far"
        parts += [standings(title, without, result.progress.best, words.predictor(device)), Text("")]
    return Group(*parts, layout.pairs((*_places(store, tables, modules), *_counts(result))))


def session_object(
    result: SessionResult,
    device: Device,
    without: Sequence[Problem],
    store: str,
    tables: Sequence[Path] = (),
    modules: Sequence[Path] = (),
) -> dict[str, Any]:
    """The fields of the JSON object of `tune`, after `m3gen` and `command`."""
    progress = result.progress
    return {
        "arch": device.arch,
        "device": device.name,
        "ended": result.ended,
        "winners": [machine.winner(row) for row in result.rows],
        "without_winner": [machine.standing(problem, progress.best.get(problem)) for problem in without],
        "failures": {str(status): count for status, count in progress.failed.items() if count},
        "refused": dict(progress.refused),
        "evaluated": progress.evaluated,
        "stopped": {str(stage): count for stage, count in progress.stopped.items()},
        "compiled": progress.compiled,
        "cached": progress.cached,
        "seconds": round(progress.elapsed_s, 3),
        "store": store,
        "tables": [str(path) for path in tables],
        "modules": [str(path) for path in modules],
    }


def _places(store: str, tables: Sequence[Path], modules: Sequence[Path]) -> list[tuple[str, str]]:
    return [
        ("tables", "\n".join(map(str, tables)) or "none written"),
        ("modules", "\n".join(map(str, modules)) or "none written"),
        ("store", store),
    ]


def _counts(result: SessionResult) -> list[tuple[str, str]]:
    progress = result.progress
    evaluated = f"{progress.evaluated:,}, {progress.stored:,} of them from the store"
    return [
        ("ended", f"{_ENDED[result.ended]}, after {words.duration(progress.elapsed_s)}"),
        ("evaluated", evaluated if progress.stored else f"{progress.evaluated:,}"),
        ("stopped early", words.stopped(progress.stopped)),
        ("kernels", f"{progress.compiled:,} compiled, {progress.cached:,} cached"),
        ("failed", words.failures(progress.failed)),
        ("refused by rule", words.counts(progress.refused)),
    ]
