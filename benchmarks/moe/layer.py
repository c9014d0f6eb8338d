"""The layer behind a table: hidden size, experts per token, routing, and its two GEMMs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

# (experts, intermediate columns per rank or None for any) -> hidden size, experts per token. File names do not
# tell them: these are of the public models with so many experts (Mixtral 8x7B and 8x22B, Llama 4 Scout and
# Maverick, Qwen1.5-MoE, DeepSeek-V2, Qwen3-Coder 480B, Ernie 4.5 VL). Tables of 62 experts fit none we know.
_SMALL_MIXTRAL = (1792, 3584, 7168, 14336)
_MODELS = {16: (5120, 1), 60: (2048, 4), 72: (2560, 6), 128: (5120, 1)}


@dataclass(frozen=True, slots=True)
class Gemm:
    """`rows` counts routed copies of tokens; `columns` of the output; `depth` is K."""

    rows: int
    columns: int
    depth: int


def model(experts: int, intermediate: int) -> tuple[int, int] | None:
    """Hidden size and experts per token; None when no public model is known."""
    if experts == 8:
        return (4096 if intermediate in _SMALL_MIXTRAL else 6144), 2
    if experts == 160:
        return 5120, (6 if intermediate == 192 else 8)
    return _MODELS.get(experts)


def gemms(experts: int, intermediate: int, tokens: int) -> tuple[Gemm, Gemm]:
    """Gate and up projection together, then the down projection. `ValueError` when the model is not known."""
    if not (known := model(experts, intermediate)):
        raise ValueError(f"no model with {experts} experts is known")
    hidden, topk = known
    return Gemm(tokens * topk, 2 * intermediate, hidden), Gemm(tokens * topk, hidden, intermediate)


@cache
def tokens_per_expert(experts: int, topk: int, tokens: int) -> tuple[int, ...]:
    """Rows of each expert under uniform random routing without repetition, as the tuner draws it; seed 0."""
    scores = np.random.default_rng(0).standard_normal((tokens, experts))
    chosen = np.argpartition(-scores, topk - 1, axis=1)[:, :topk]
    return tuple(int(count) for count in np.bincount(chosen.ravel(), minlength=experts))
