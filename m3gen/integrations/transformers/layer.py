"""`PagedLayer`: the pages of one layer, as a cache layer of transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin

from m3gen.errors import UserError
from m3gen.integrations.transformers.sequences import Sequences, Step
from m3gen.runtime import DecodeLayer

HANDLE = "m3gen_layer"  # attribute of the keys that `update` returns, by which the attention finds the layer


class PagedLayer(CacheLayerMixin):  # type: ignore[misc]  # transformers is untyped
    """kv [pages, kv_heads, page_size, 2 * head_dim] holds K, then V; index [pages, page_size, index_dim] the index
    keys, None in a dense layer.

    In a specialised step m3gen's kernels write the step's rows and read the pages. In any other, torch copies the
    rows there, and `update` and `update_index` return whole sequences for transformers' own attention.
    """

    is_sliding = False
    is_croppable = True
    supports_early_init = False

    def __init__(
        self, number: int, kv: torch.Tensor, index: torch.Tensor | None, decode: DecodeLayer, sequences: Sequences
    ) -> None:
        super().__init__()
        self.number = number
        self.kv = kv
        self.index = index
        self.sequences = sequences
        self._decode = decode
        self._held: tuple[torch.Tensor, torch.Tensor] | None = None
        self._step: Step | None = None
        self.is_initialized = True

    @property
    def step(self) -> Step:
        """The forward pass that is on, from `update` to the next `update`."""
        assert self._step is not None, "the attention of a layer comes after its update"
        return self._step

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the pages are there from the start."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [batch, kv_heads, query_len, head_dim] into the pages. Returns whole sequences,
        [batch, kv_heads, keys, head_dim]; in a specialised step, where nobody reads them, the arguments."""
        if torch.is_grad_enabled() and key_states.requires_grad:
            raise UserError("a PagedCache keeps no gradients: call the model under torch.no_grad()")
        batch, _, query_len, head_dim = key_states.shape
        step = self._step = self.sequences.step(self.number, batch, query_len)
        if not step.specialised:
            _write(step, self.kv, torch.cat([key_states, value_states], dim=-1))
            if step.keys > query_len:
                states = _read(step, self.kv)
                key_states, value_states = states[..., :head_dim], states[..., head_dim:]
        elif self.index is None:
            self._decode.store(rows(key_states), rows(value_states))
        else:
            self._held = rows(key_states), rows(value_states)  # stored with the index keys, in one launch
        setattr(key_states, HANDLE, self)
        return key_states, value_states

    def update_index(self, index_keys: torch.Tensor) -> torch.Tensor:
        """Index keys [batch, 1, query_len, index_dim] into the pages; returns [batch, 1, keys, index_dim]."""
        assert self.index is not None, "a dense layer has no index keys"
        if self.step.specialised:
            raise UserError(
                f"layer {self.number} has transformers' own indexer, needed: m3gen's; make the cache with "
                "PagedCache.for_model(model) for the model that is called"
            )
        pages = self.index[:, None]
        _write(self.step, pages, index_keys)
        return index_keys if self.step.keys == self.step.query_len else _read(self.step, pages)

    def select(self, index_q: torch.Tensor, index_k: torch.Tensor) -> torch.Tensor:
        """Store the step's rows, then score and select for index_q [rows, index_heads, index_dim], in a
        specialised step; index_k [rows, index_dim]. Returns ids int32 [batch, index_heads, query_len, topk],
        -1 past the last."""
        assert self._held is not None, "a selection comes after its update"
        self._decode.store(*self._held, index_k)
        self._held = None
        ids = self._decode.select(index_q)
        batch, query_len = self.step.positions.shape
        return ids.view(len(ids), batch, query_len, -1).transpose(0, 1)

    def attend(self, query: torch.Tensor) -> torch.Tensor:
        """query [batch, q_heads, query_len, head_dim] over the pages, in a specialised step; returns
        [batch, query_len, q_heads, head_dim]."""
        q = rows(query)
        out = torch.empty_like(q)
        self._decode.attend(q, out)
        return out.view(*self.step.positions.shape, *q.shape[1:])

    def get_seq_length(self) -> int:
        """Columns of the steps so far, padding included, as transformers counts them."""
        return self.sequences.width

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.sequences.width + query_length, 0

    def get_max_length(self) -> int:
        return self.sequences.max_len


def rows(states: torch.Tensor) -> torch.Tensor:
    """[batch, heads, query_len, dim] as contiguous rows [batch * query_len, heads, dim]."""
    return states.transpose(1, 2).flatten(0, 1).contiguous()


def _write(step: Step, pages: torch.Tensor, states: torch.Tensor) -> None:
    """states [batch, heads, query_len, dim] into pages [pages, heads, page_size, dim], at the step's slots."""
    slots, page_size = step.slots.flatten(), pages.shape[2]
    pages[slots // page_size, :, slots % page_size] = rows(states)


def _read(step: Step, pages: torch.Tensor) -> torch.Tensor:
    """The sequences, [batch, heads, keys, dim]; zeros past the end of each, where the pages may hold NaN."""
    blocks = -(-step.keys // pages.shape[2])
    states = pages[step.block_table[:, :blocks].long()].transpose(1, 2).flatten(2, 3)[:, :, : step.keys]
    is_live = torch.arange(step.keys, device=pages.device) < step.ends[:, None]
    return states.where(is_live[:, None, :, None], 0.0)
