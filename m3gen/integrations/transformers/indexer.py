"""`PagedIndexer`: MiniMax-M3's indexer with m3gen's score and top-k where a `PagedCache` decodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as stock

from m3gen.errors import UserError
from m3gen.integrations.transformers.layer import PagedLayer


class PagedIndexer(stock.MiniMaxM3VLIndexer):  # type: ignore[misc]  # transformers is untyped
    """The stock indexer, weights and all, but for the steps that m3gen runs."""

    def forward(
        self,
        hidden_states: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        cache: Any,
        position_ids: torch.Tensor,
    ) -> torch.Tensor:
        """hidden_states [batch, query_len, hidden]; returns ids [batch, index_heads, query_len, topk]."""
        layer = None if cache is None else cache.layers[self.layer_idx]
        if not (isinstance(layer, PagedLayer) and layer.step.specialised):
            ids: torch.Tensor = super().forward(hidden_states, position_embeddings, cache, position_ids)
            return ids
        shape = (*hidden_states.shape[:2], -1, self.head_dim)  # [batch, query_len, heads, dim]
        index_q = self.q_norm(self.q_proj(hidden_states).view(shape))
        index_k = self.k_norm(self.k_proj(hidden_states).view(shape))
        cos, sin = (part[..., : self.head_dim] for part in position_embeddings)
        index_q, index_k = stock.apply_rotary_pos_emb(index_q, index_k, cos, sin, unsqueeze_dim=2)
        return layer.select(index_q.flatten(0, 1), index_k.flatten(0, 2))


def check(model: torch.nn.Module) -> None:
    """`UserError` when some indexer of a model is no longer the stock one, or ours."""
    changed = [
        str(indexer.layer_idx)
        for indexer in _indexers(model)
        if type(indexer) not in (stock.MiniMaxM3VLIndexer, PagedIndexer) or "forward" in vars(indexer)
    ]
    if changed:
        raise UserError(
            f"the indexers of layers {', '.join(changed)} have been replaced or wrapped, needed: those of "
            "transformers; load the model without device_map"
        )


def install(model: torch.nn.Module) -> None:
    """Put `PagedIndexer` into a model, weights in place; `restore` undoes it."""
    for indexer in _indexers(model):
        indexer.__class__ = PagedIndexer


def restore(model: torch.nn.Module) -> None:
    """Give a model its own indexers back. Its `PagedCache`s can then serve it no more."""
    for indexer in _indexers(model):
        if type(indexer) is PagedIndexer:
            indexer.__class__ = stock.MiniMaxM3VLIndexer


def _indexers(model: torch.nn.Module) -> Iterator[Any]:
    return (module for module in model.modules() if isinstance(module, stock.MiniMaxM3VLIndexer))
