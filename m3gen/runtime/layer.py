"""`DecodeLayer`: one layer's decode, launch by launch or all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from m3gen.runtime.binding import BoundLayer
from m3gen.runtime.health import Watch
from m3gen.runtime.plan import Plan
from m3gen.runtime.step import Reason

OPS = ("qk_norm_rope_insert", "kv_insert", "index_select", "sparse_decode", "dense_decode")
_INSERT, _STORE, _SELECT, _ATTEND, _ATTEND_ALL = range(len(OPS))
_NOTHING = torch.empty(0)


@dataclass(frozen=True, slots=True)
class NormWeights:
    """What a layer norms and rotates by: fp32 or the model's dtype. `q`, `k`, `index_q`, `index_k` [head_dim], a
    head is multiplied by 1 + weight; the last two None in a dense layer. `cos_sin` [max_positions, rotary_dim],
    cosines then sines."""

    q: torch.Tensor
    k: torch.Tensor
    cos_sin: torch.Tensor
    index_q: torch.Tensor | None = None
    index_k: torch.Tensor | None = None


class Now:
    """The step that is being run: its plan and its tensors. One, which all layers look at."""

    __slots__ = (
        "block_table",
        "index_block_table",
        "index_slot_mapping",
        "plan",
        "positions",
        "seq_lens",
        "slot_mapping",
    )

    def __init__(self, plan: Plan) -> None:
        self.drop(plan)

    def drop(self, plan: Plan) -> None:
        """Hold `plan` and no tensor."""
        self.plan = plan
        self.block_table = self.index_block_table = self.seq_lens = _NOTHING
        self.positions: torch.Tensor | None = None
        self.slot_mapping: torch.Tensor | None = None
        self.index_slot_mapping: torch.Tensor | None = None


class DecodeLayer:
    """Launches of one layer in the step that `ModelState.begin` began; rows are the step's decode rows.

    Valid until the cache is bound anew; afterwards, and in a step of the stock path, a launch raises
    `RuntimeError`.
    """

    __slots__ = ("_cache", "_insert", "_launches", "_now", "_plan", "_watch", "_weights", "is_sparse", "layer")

    def __init__(self, layer: int, cache: BoundLayer, now: Now, launches: list[int], watch: Watch | None) -> None:
        self.layer = layer
        self.is_sparse = cache.index is not None
        self._cache = cache
        self._now = now
        self._launches = launches
        self._watch = watch
        self._plan: Plan | None = None
        self._weights: NormWeights | None = None
        self._insert: Callable[..., None] = now.plan.insert

    def run(self, qkv: torch.Tensor, weights: NormWeights, out: torch.Tensor) -> None:
        """All of it: norm, rotate and insert, select where the layer is sparse, attend.

        qkv [rows, (q_heads + 2 kv_heads (+ index_heads + 1)) * head_dim], read; out [rows, q_heads, head_dim].
        """
        q, index_q = self.insert(qkv, weights)
        if self.is_sparse:
            self.select(index_q)
        self.attend(q, out)

    def insert(self, qkv: torch.Tensor, weights: NormWeights) -> tuple[torch.Tensor, torch.Tensor]:
        """Norm and rotate the heads of each row, insert K, V and index K; q and index q in the state's buffers."""
        now = self._now
        plan = now.plan
        if plan is not self._plan or weights is not self._weights:
            self._take(plan, weights)
        self._launches[_INSERT] += 1
        self._insert(qkv, now.positions, now.slot_mapping, now.index_slot_mapping)
        return plan.q, plan.index_q

    def _take(self, plan: Plan, weights: NormWeights) -> None:
        """What does not change while steps are of one size, put together once: arguments that are spelled out cost
        half of those in a mapping."""
        self._plan, self._weights = plan, weights
        cache, w, q, index_q = self._cache, weights, plan.q, plan.index_q
        launch = getattr(plan.insert, "func", plan.insert)
        fixed = {**getattr(plan.insert, "keywords", {}), **cache.scales}

        def dense(qkv: torch.Tensor, positions: Any, slots: Any, index_slots: Any) -> None:
            launch(qkv, positions, w.cos_sin, w.q, w.k, cache.k, cache.v, slots, q, **fixed)

        def sparse(qkv: torch.Tensor, positions: Any, slots: Any, index_slots: Any) -> None:
            launch(
                qkv, positions, w.cos_sin, w.q, w.k, cache.k, cache.v, slots, q, index_q_weight=w.index_q,
                index_k_weight=w.index_k, index_cache=cache.index, index_slot_mapping=index_slots,
                index_q_out=index_q, **fixed,
            )  # fmt: skip

        self._insert = sparse if self.is_sparse else dense

    def store(self, k: torch.Tensor, v: torch.Tensor, index_k: torch.Tensor | None = None) -> None:
        """Insert rows that are normed and rotated: k, v [rows, kv_heads, head_dim], index_k [rows, index_dim]."""
        now, cache = self._now, self._cache
        self._launches[_STORE] += 1
        if index_k is None:
            now.plan.store(k, v, cache.k, cache.v, now.slot_mapping, **cache.scales)
            return
        now.plan.store(
            k, v, cache.k, cache.v, now.slot_mapping, index_k=index_k, index_cache=cache.index,
            index_slot_mapping=now.index_slot_mapping, **cache.scales,
        )  # fmt: skip

    def select(self, index_q: torch.Tensor) -> torch.Tensor:
        """Score and select the blocks of each row: int32 [index_heads, rows, topk], in the state's buffer until the
        next call. One launch or several, as the kernel was tuned.

        index_q [rows, index_heads, index_dim].
        """
        now = self._now
        plan = now.plan
        self._launches[_SELECT] += 1
        plan.select(index_q, self._cache.index, now.index_block_table, now.seq_lens, plan.scores, plan.ids)
        return plan.ids

    def attend(self, q: torch.Tensor, out: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        """Attend q [rows, q_heads, head_dim] into out, alike: a dense layer to the whole context, a sparse one to
        `ids` [kv_heads, rows, topk], by default those of the last `select`."""
        now, cache = self._now, self._cache
        plan = now.plan
        if self.is_sparse:
            self._launches[_ATTEND] += 1
            ids = plan.ids if ids is None else ids
            plan.attend(q, cache.k, cache.v, ids, now.block_table, now.seq_lens, out, **cache.scales)
        else:
            self._launches[_ATTEND_ALL] += 1
            plan.attend_all(q, cache.k, cache.v, now.block_table, now.seq_lens, out, **cache.scales)
        if self._watch is not None:
            self._watch.output(out, ids)

    def expire(self) -> None:
        """No launch any more, and no cache kept alive."""
        self._now = Now(Plan(Reason.NO_CACHE))
        self._cache = BoundLayer(_NOTHING, _NOTHING, None, {})
        self._plan, self._weights, self._insert = None, None, self._now.plan.insert
