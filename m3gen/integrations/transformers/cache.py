"""`PagedCache`: the pages of a MiniMax-M3 model and the `ModelState` that decodes from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from transformers.cache_utils import Cache

from m3gen.codegen import build, build_interpreted
from m3gen.errors import UserError
from m3gen.integrations.transformers import indexer, support
from m3gen.integrations.transformers.layer import PagedLayer
from m3gen.integrations.transformers.pool import PagePool
from m3gen.integrations.transformers.sequences import Sequences
from m3gen.runtime import KernelSet, LayerCache, Limits, ModelState, Settings, backend, load
from m3gen.spec import ModelSpec

_INTERPRETED = "gfx942"  # whose kernels the interpreter runs when there is no GPU and none is named


class PagedCache(Cache):  # type: ignore[misc]  # transformers is untyped
    """A `cache=` for a model whose attention implementation is "m3gen".

    Steps of one of `query_lens` tokens a sequence run m3gen's kernels, and `state.counters` counts them. All other
    steps, prefill among them, run the attention of transformers and are copied into the pages.

    Sequences may differ in length: padding on the right of the first step is told by the attention mask, and each
    sequence goes on at its own end, with `position_ids` to match. Padding on the left, and a mask that hides
    tokens of the cache, are refused.
    """

    def __init__(self, spec: ModelSpec, state: ModelState, pool: PagePool, max_len: int, poison: bool) -> None:
        """New pages, bound to `state`. `PagedCache.for_model` makes all of it."""
        self.state = state
        self._poison = poison
        self._sequences = Sequences(state, pool, spec.layers, max_len)
        kv = [self._pages(spec.kv_heads, spec.page_size, 2 * spec.head_dim) for _ in range(spec.layers)]
        index = [
            self._pages(spec.page_size, spec.index_dim) if layer >= spec.dense_layers else None
            for layer in range(spec.layers)
        ]
        state.initialize_kv_cache(
            {layer: LayerCache(kv=kv[layer], index=index[layer]) for layer in range(spec.layers)}
        )
        super().__init__(
            layers=[
                PagedLayer(layer, kv[layer], index[layer], state.layer(layer), self._sequences)
                for layer in range(spec.layers)
            ]
        )

    @classmethod
    def for_model(
        cls,
        model: Any,
        *,
        max_batch: int,
        max_len: int,
        query_lens: Sequence[int] = (1,),
        arch: str | None = None,
        kernels: KernelSet | None = None,
        pages: int | None = None,
        page_order: torch.Generator | None = None,
        poison: bool = False,
        debug: bool = False,
    ) -> Self:
        """A cache for up to `max_batch` sequences of up to `max_len` tokens; puts m3gen's indexer into the model.

        query_lens: tokens a sequence of the steps that m3gen runs; 1, and with assisted decoding more. arch: whose
        kernels run, by default those of the GPU that is here. kernels: what runs, by default the tuned tables and
        what the field does where there is none. pages: of 128 tokens, by default enough for all. page_order (of
        the CPU) draws the order in which pages are given out, and poison fills with NaN what belongs to nobody:
        both are for tests. debug: kernels check what they are given.

        Raises `UserError` with everything that stands against it.
        """
        spec = support.model_spec(model.config.get_text_config())
        device, dtype = support.placement(model)
        indexer.check(model)
        live = backend.live_architecture()
        if kernels is None:
            arch = arch or live or _INTERPRETED
            kernels = load(arch, build=build if arch == live else build_interpreted)
        settings = Settings(
            spec=spec,
            arch=arch or kernels.arch,
            device=device,
            dtype=dtype,
            kv_dtype=dtype,
            limits=Limits(max_requests=max_batch, query_lens=tuple(query_lens), max_model_len=max_len),
            norm=False,
            debug=debug,
        )
        state = ModelState(settings, kernels)
        blocks = -(-max_len // spec.page_size)
        count = max_batch * blocks if pages is None else pages
        pool = PagePool(count, spec.page_size, max_batch, blocks, device, page_order)
        cache = cls(spec, state, pool, max_len, poison)
        indexer.install(model)
        return cache

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each sequence, padding not among them."""
        return self._sequences.lengths

    @property
    def pool(self) -> PagePool:
        """Which pages belong to which sequence."""
        return self._sequences.pool

    def update(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """What the attention of a layer calls. `RuntimeError` after `close`."""
        if self.state.closed:
            raise RuntimeError("the PagedCache is closed: make another for the model")
        states: tuple[torch.Tensor, torch.Tensor] = super().update(*args, **kwargs)
        return states

    def reset(self) -> None:
        """Forget the sequences; every page is free again."""
        self._rewind((), 0)

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last -tokens_to_remove tokens of every sequence, as assisted decoding does."""
        width = self._sequences.width
        if not -width <= tokens_to_remove <= 0:
            raise UserError(f"crop({tokens_to_remove}), needed: minus the tokens to remove, of {width} at most")
        if tokens_to_remove and self._sequences.padded:
            raise UserError("crop of sequences that were padded, needed: sequences of one length")
        self._rewind([length + tokens_to_remove for length in self.lengths], width + tokens_to_remove)

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Refused: beams share what they have in common, and a page belongs to one sequence."""
        raise UserError("a PagedCache cannot hold beams: generate with num_beams=1")

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Refused, for the reason of `reorder_cache`."""
        raise UserError("a PagedCache cannot repeat its sequences: repeat the input_ids instead")

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Refused: a sequence keeps its row."""
        raise UserError("a PagedCache cannot drop some of its sequences: reset() it and begin again")

    def close(self) -> None:
        """Release the state and the pages; the cache serves no more. May be called twice."""
        self.state.close()
        self.layers.clear()

    def _pages(self, *shape: int) -> torch.Tensor:
        settings = self.state.settings
        pages = torch.empty(self.pool.pages, *shape, dtype=settings.dtype, device=settings.device)
        return pages.fill_(float("nan")) if self._poison else pages

    def _rewind(self, lengths: Sequence[int], width: int) -> None:
        freed = self._sequences.rewind(lengths, width)
        if self._poison and freed:
            for layer in self.layers:
                for pages in (layer.kv, layer.index):
                    if pages is not None:
                        pages[freed] = float("nan")
