"""`Case`: one shipped winner among the configurations its tuner could have tried."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .campaign import Campaign
from .config import MoeConfig
from .kernels import Column, Kernels
from .layer import gemms, model
from .pool import allows, sample, space
from .tables import Entry

Mask: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"

FEWEST = 5  # rivals below which a percentile says nothing


@dataclass(frozen=True, slots=True)
class Case:
    """Masks and `winner` index the rows of `kernels`. `rivals` are what a percentile is taken over.

    Rivals are the sampled configurations and, drawn for each case, as large a share of the other winners as was
    sampled of the rest: together an unbiased sample of what the tuner tried.
    """

    entry: Entry
    kernels: Kernels
    winner: int
    rivals: Mask
    siblings: Mask  # of the winner's tile, with other compile options


def cases(campaign: Campaign, entries: Sequence[Entry], kernels: Kernels) -> Iterator[Case]:
    """Of every entry whose model is known and whose winner was compiled; those with too few rivals are left out.

    Configurations that compile to the winner's very code are no rivals of it.
    """
    index = {config: row for row, config in enumerate(kernels.configs)}
    winners = {entry.winner for entry in entries}
    drawn = set(sample(campaign, sorted(winners))) & set(index)
    share = len(drawn) / max(1, len(set(space(campaign)) - winners))
    is_drawn = np.array([config in drawn for config in kernels.configs])
    codes = np.array(kernels.codes)
    for entry in entries:
        if not model(entry.experts, entry.intermediate) or entry.winner not in index:
            continue
        winner = index[entry.winner]
        allowed = _allowed(entry, kernels) & (codes != codes[winner])
        rivals = allowed & (is_drawn | _other_winners(entry, kernels, winners, share))
        siblings = allowed & np.array([config.tile == entry.winner.tile for config in kernels.configs])
        if rivals.sum() >= FEWEST:
            yield Case(entry, kernels, winner, rivals, siblings)


def percentile(case: Case, cost: Column, among: Mask | None = None) -> float:
    """Share of the rivals that are ranked better than the winner, ties by half: 0 best, 50 random, in percent."""
    rivals = cost[case.rivals if among is None else among]
    mine = cost[case.winner]
    return float(100 * ((rivals < mine).sum() + (rivals == mine).sum() / 2) / len(rivals))


def _allowed(entry: Entry, kernels: Kernels) -> Mask:
    layer = gemms(entry.experts, entry.intermediate, entry.tokens)
    size = entry.campaign.element_bytes
    return np.array([any(allows(config, gemm, size) for gemm in layer) for config in kernels.configs])


def _other_winners(entry: Entry, kernels: Kernels, winners: set[MoeConfig], share: float) -> Mask:
    """Each with probability `share`, by the names of entry and configuration: adding one changes no other."""
    name = f"{entry.campaign.name} {entry.device} {entry.experts} {entry.intermediate} {entry.tokens}"
    return np.array(
        [config in winners and random.Random(f"{name} {config}").random() < share for config in kernels.configs]
    )
