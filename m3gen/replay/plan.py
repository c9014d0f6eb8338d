"""Which runs a benchmark of searching is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from m3gen import paths
from m3gen.errors import UserError
from m3gen.replay import kernel_tuner
from m3gen.replay.recorded import Recorded
from m3gen.replay.runs import Run, load
from m3gen.replay.score import FIRST
from m3gen.replay.vendor import vendor
from m3gen.search.sampler import make_sampler, sampler_names

NOT_BY_DEFAULT = ("exhaustive",)  # on a space that does not fit the budget it sees a corner only


@dataclass(frozen=True, slots=True)
class Plan:
    """`runs` in their order, the recorded `spaces` by path, and `notes` for whoever reads the outcome."""

    runs: tuple[Run, ...]
    spaces: dict[Path, Recorded]
    notes: tuple[str, ...]


def plan(
    files: Sequence[Path],
    samplers: Sequence[str],
    repeats: int,
    budget: int,
    *,
    sibling: bool = False,
    sibling_budget: int | None = None,
) -> Plan:
    """Every sampler on every space, `repeats` times; with `sibling`, once for each other space of its kernel on a
    device of the same vendor, with the record of that one as what is known before, or with `sibling_budget` what a
    search of so many evaluations saw of it.

    No samplers: all of them, and Kernel Tuner's strategies where it is installed. No files: the spaces of the
    checkout. `UserError` when there is nothing to run.
    """
    if budget < FIRST:
        raise UserError(f"--budget {budget} is too small: the score begins with evaluation {FIRST}")
    if sibling_budget is not None and not sibling:
        raise UserError("--sibling-budget says how much is known of a sibling: it goes with --sibling")
    spaces = {path: load(path) for path in files or shipped()}
    chosen = list(samplers) or _all_samplers()
    for sampler in chosen:
        _check(sampler)
    if sibling:
        chosen = [sampler for sampler in chosen if not sampler.startswith(kernel_tuner.PREFIX)]
    pairs = [(path, other) for path in spaces for other in (_siblings(path, spaces) if sibling else [None])]
    if not pairs or not chosen:
        raise UserError(
            "no run to make: --sibling needs two spaces of one kernel and vendor and a sampler of m3gen's own"
        )
    runs = [
        Run(path, sampler, repeat, budget, other, sibling_budget)
        for path, other in pairs
        for sampler in chosen
        for repeat in range(repeats)
    ]
    return Plan(tuple(runs), spaces, tuple(_notes(chosen, repeats, budget, sibling, sibling_budget)))


def shipped() -> list[Path]:
    """The recorded spaces of the checkout; `UserError` where there is none, as in a wheel."""
    root = paths.checkout()
    found = [] if root is None else sorted((root / "benchmarks" / "spaces").glob("*.json.gz"))
    if not found:
        raise UserError("no recorded spaces come with this installation: name some with --spaces FILE")
    return found


def _all_samplers() -> list[str]:
    own = [name for name in sampler_names() if name not in NOT_BY_DEFAULT]
    theirs = kernel_tuner.STRATEGIES if kernel_tuner.available() else ()
    return own + [kernel_tuner.PREFIX + name for name in theirs]


def _check(sampler: str) -> None:
    if not sampler.startswith(kernel_tuner.PREFIX):
        make_sampler(sampler, 0)
    elif not kernel_tuner.available():
        raise UserError(f"{sampler}: {kernel_tuner.HOW_TO_GET_IT}")


def _siblings(path: Path, spaces: dict[Path, Recorded]) -> list[Path | None]:
    """What a device of another vendor says does harm (docs/search.md). Unknown vendors count as one."""
    here = spaces[path]
    return [
        other
        for other, there in spaces.items()
        if other != path and there.kernel == here.kernel and vendor(there.device) is vendor(here.device)
    ]


def _notes(
    samplers: Sequence[str], repeats: int, budget: int, sibling: bool, sibling_budget: int | None
) -> list[str]:
    notes = [
        f"Mean over evaluations {FIRST} to {budget} of (random - sampler) / (random - optimum), the random search "
        f"without replacement in closed form; {repeats} repeats, failures charged, repetitions not.",
    ]
    if sibling:
        known = "whole record" if sibling_budget is None else f"search of {sibling_budget} evaluations"
        notes.append(f"Every space with the {known} of every other device of its vendor; the mean is over pairs.")
    if any(sampler.startswith(kernel_tuner.PREFIX) for sampler in samplers):
        notes.append(f"Kernel Tuner {kernel_tuner.version()} in simulation mode, default options.")
    elif not kernel_tuner.available():
        notes.append(f"{kernel_tuner.HOW_TO_GET_IT}.")
    return notes
