"""`SparseLayer`: a loaded sparse layer of vLLM, and m3gen in front of its attention and its indexer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from vllm.forward_context import get_forward_context
from vllm.model_executor.models.utils import extract_layer_index
from vllm.models.minimax_m3.common.indexer import MiniMaxM3IndexerImpl
from vllm.models.minimax_m3.common.sparse_attention import MiniMaxM3SparseImpl

from m3gen.runtime import DecodeLayer, LayerCache, Plan

_PLAN = "m3gen_plan"  # attribute of the metadata of a step whose decode rows are m3gen's


def sparse_layers(model: Any) -> list[SparseLayer]:
    """Those of this rank, in order."""
    return [SparseLayer(module) for module in model.modules() if _is_sparse(module)]


def _is_sparse(module: Any) -> bool:
    indexer = getattr(getattr(module, "indexer", None), "impl", None)
    return isinstance(getattr(module, "impl", None), MiniMaxM3SparseImpl) and isinstance(
        indexer, MiniMaxM3IndexerImpl
    )


class SparseLayer:
    """`attention` is vLLM's module. Its `impl`, and that of its indexer, stay what they are; `interpose` sends the
    decode rows of a step that is m3gen's around them, `withdraw` undoes that."""

    def __init__(self, attention: Any) -> None:
        self.attention = attention
        self.indexer = attention.indexer.impl
        self.index = int(extract_layer_index(attention.layer_name))
        self.name: str = attention.layer_name
        self.index_name: str = self.index_cache.prefix
        self.decode: DecodeLayer | None = None

    @property
    def index_cache(self) -> Any:
        return self.indexer.index_cache

    def cache(self, kv_scale: str) -> LayerCache:
        """What vLLM has bound to this layer."""
        scales = {}
        if kv_scale == "scalar":
            scales = {"k_scale": self.attention._k_scale, "v_scale": self.attention._v_scale}
        return LayerCache(kv=self.attention.kv_cache, index=self.index_cache.kv_cache, **scales)

    def interpose(self, index_q_dtype: torch.dtype) -> None:
        """`index_q_dtype`: what the score kernel takes; vLLM makes index queries in the index cache's dtype."""
        impl, indexer = self.attention.impl, self.indexer
        attend, select = impl.forward, indexer.forward
        heads, head_dim = impl.num_heads, impl.head_size
        index_heads, index_dim = indexer.num_index_heads, indexer.index_head_dim

        def forward(layer: Any, query: torch.Tensor, kv_cache: Any, output: Any, **others: Any) -> Any:
            metadata = _metadata(self.name)
            if (plan := getattr(metadata, _PLAN, None)) is None:
                return attend(layer, query, kv_cache, output, **others)
            assert self.decode is not None
            rows = plan.rows
            self.decode.attend(query[:rows].view(rows, heads, head_dim), output[:rows].view(rows, heads, head_dim))
            if metadata.num_prefills:
                attend(layer, query, kv_cache, output, **others)
            return output

        def forward_index(index_query: torch.Tensor, **others: Any) -> Any:
            metadata = _metadata(self.index_name)
            if (plan := getattr(metadata, _PLAN, None)) is None:
                return select(index_query, **others)
            assert self.decode is not None
            rows = plan.rows
            self.decode.select(index_query[:rows].view(rows, index_heads, index_dim).to(index_q_dtype))
            return select(index_query, **others) if metadata.num_prefills else (None, None)

        impl.forward, indexer.forward = forward, forward_index

    def withdraw(self) -> None:
        self.decode = None
        for one in (self.attention.impl, self.indexer):
            one.__dict__.pop("forward", None)


def _metadata(name: str) -> Any:
    """A layer's metadata in the step that runs; None in a profiling run, which has none."""
    of_layers = get_forward_context().attn_metadata
    return of_layers.get(name) if isinstance(of_layers, dict) else None


def prefill_only(metadata: dict[str, Any], layers: list[SparseLayer], plan: Plan) -> None:
    """Take the decode rows out of what vLLM's implementations see, in place, and leave the plan there for ours.

    The counts of tokens stay: they say where the prefill rows begin.
    """
    copies: dict[int, Any] = {}
    for name in _names(layers):
        found = metadata[name]
        if (made := copies.get(id(found))) is None:
            made = copies[id(found)] = replace(found, num_decodes=0, decode=None)
            setattr(made, _PLAN, plan)
        metadata[name] = made


def _names(layers: list[SparseLayer]) -> Iterator[str]:
    for layer in layers:
        yield layer.name
        yield layer.index_name
