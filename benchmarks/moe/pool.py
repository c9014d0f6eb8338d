"""The tuner's space, what it prunes, and the pool: all shipped winners and a random sample of the rest.

The space and the rules are those of vLLM's benchmarks/kernels/benchmark_moe.py for ROCm
(https://github.com/vllm-project/vllm), with waves_per_eu 0, which every shipped winner has.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from .campaign import Campaign
from .config import MoeConfig
from .layer import Gemm, model
from .tables import Entry

_SHARED_BYTES = 64 << 10  # of A's and B's tile together, on any architecture
_SIZES = (16, 32, 64, 128, 256)
_WARPS = (1, 2, 4, 8)
_COMPLETED = 0.8  # of the winners have all options of their tile compiled, to rank inside a tile
_LARGE = 2048  # rows and columns from which the tuner leaves small tiles out


def space(campaign: Campaign) -> Iterator[MoeConfig]:
    """Every configuration that the tuner may try for some layer."""
    wide = campaign.element_bytes == 2
    for m, n, k, warps in itertools.product(_SIZES, _SIZES, _SIZES, _WARPS):
        if k * (m + n) * campaign.element_bytes > _SHARED_BYTES or (k == 16 and not wide):
            continue
        if not wide:
            yield MoeConfig(m, n, k, warps, 0, 1)
            continue
        for nonkdim, kpack in itertools.product((16, 32), (1, 2)):
            if nonkdim <= min(m, n):
                yield MoeConfig(m, n, k, warps, nonkdim, kpack)


def sample(campaign: Campaign, winners: Sequence[MoeConfig], seed: int = 0) -> list[MoeConfig]:
    """`campaign.sampled` configurations of the space that are no winner's, drawn without looking at any."""
    rest = sorted(set(space(campaign)) - set(winners))
    return random.Random(seed).sample(rest, min(campaign.sampled, len(rest)))


def completions(campaign: Campaign, entries: Sequence[Entry]) -> list[MoeConfig]:
    """Every configuration of the tiles that, most frequent first, make up `_COMPLETED` of the winners."""
    tiles = Counter(entry.winner.tile for entry in entries if model(entry.experts, entry.intermediate))
    chosen: set[tuple[int, int, int]] = set()
    for tile, _ in sorted(tiles.items(), key=lambda item: (-item[1], item[0])):
        if sum(tiles[one] for one in chosen) >= _COMPLETED * tiles.total():
            break
        chosen.add(tile)
    return sorted(config for config in space(campaign) if config.tile in chosen)


def pool(campaign: Campaign, entries: Sequence[Entry]) -> list[MoeConfig]:
    """Winners, sample, completions, each configuration once: what is to be compiled, in this order."""
    winners = sorted({entry.winner for entry in entries})
    drawn = sample(campaign, winners)
    return list(dict.fromkeys([*winners, *drawn, *completions(campaign, entries)]))


def allows(config: MoeConfig, gemm: Gemm, element_bytes: int) -> bool:
    """Whether the tuner tries the configuration for this GEMM of `gemm.rows` rows, routed copies included."""
    rows, columns, m, n = gemm.rows, gemm.columns, config.block_m, config.block_n
    if element_bytes == 2:
        widest = 16 if rows < 32 or columns < 32 else 32
        if config.nonkdim > widest or (config.nonkdim >= rows and config.nonkdim != m):
            return False
        if config.nonkdim >= columns and config.nonkdim != n:
            return False
    if (2 * rows < m and m != 16) or (2 * columns < n and n != 16) or gemm.depth % config.block_k:
        return False
    if rows >= _LARGE and columns >= _LARGE:
        return min(m, n, config.block_k) >= 64 and config.num_warps >= 4
    return True
