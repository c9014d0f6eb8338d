"""A step of padding: every kernel is launched once and compiled, no page is read or written."""

from __future__ import annotations

from functools import partial

import torch

from m3gen.runtime.layer import DecodeLayer, NormWeights
from m3gen.runtime.plan import Plan
from m3gen.runtime.settings import Settings
from m3gen.runtime.step import StepInputs
from m3gen.spec import dtype


def padding(plan: Plan, blocks: int, device: torch.device) -> StepInputs:
    """Requests of no token, rows without a slot."""
    return StepInputs(
        block_table=torch.zeros((plan.requests, blocks), dtype=torch.int32, device=device),
        seq_lens=torch.zeros(plan.requests, dtype=torch.int32, device=device),
        positions=torch.zeros(plan.rows, dtype=torch.int64, device=device),
        slot_mapping=torch.full((plan.rows,), -1, dtype=torch.int64, device=device),
    )


def launch_all(layer: DecodeLayer, rows: int, settings: Settings) -> None:
    """Every launch of a layer, in the step of `rows` rows that has begun."""
    spec, shard = settings.spec, settings.shard
    zeros = partial(torch.zeros, dtype=settings.dtype, device=settings.device)
    out = zeros(rows, shard.q_heads, spec.head_dim)
    if settings.norm:
        heads = shard.q_heads + 2 * shard.kv_heads + (shard.index_heads + 1 if layer.is_sparse else 0)
        weight = zeros(spec.head_dim)
        index = (weight, weight) if layer.is_sparse else (None, None)
        weights = NormWeights(weight, weight, zeros(1, spec.rotary_dim), *index)
        layer.run(zeros(rows, heads * spec.head_dim), weights, out)
        return
    if settings.store:
        row = zeros(rows, shard.kv_heads, spec.head_dim)
        layer.store(row, row, row[:, 0] if layer.is_sparse else None)
    if layer.is_sparse:
        of = dtype(settings.index_q_name).torch()
        layer.select(torch.zeros(rows, shard.index_heads, spec.index_dim, dtype=of, device=settings.device))
    layer.attend(torch.zeros_like(out), out)
