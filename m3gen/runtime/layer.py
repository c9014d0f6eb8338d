"""`DecodeLayer`: one layer's decode, launch by launch or all at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from m3gen.runtime.binding import BoundLayer
from m3gen.runtime.health import Watch
from m3gen.runtime.plan import Plan
from m3gen.runtime.step import Reason

OPS = ("qk_norm_rope_insert", "kv_insert", "index_score", "index_topk", "sparse_decode", "dense_decode")
_INSERT, _STORE, _SCORE, _SELECT, _ATTEND, _ATTEND_ALL = range(len(OPS))
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

    __slots__ = ("_cache", "_fixed", "_keywords", "_launches", "_now", "_watch", "_weights", "is_sparse", "layer")

    def __init__(self, layer: int, cache: BoundLayer, now: Now, launches: list[int], watch: Watch | None) -> None:
        self.layer = layer
        self.is_sparse = cache.index is not None
        self._cache = cache
        self._now = now
        self._launches = launches
        self._watch = watch
        self._weights: NormWeights | None = None
        self._fixed: tuple[torch.Tensor, ...] = ()
        self._keywords: dict[str, torch.Tensor | None] = {}

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
        now, plan = self._now, self._now.plan
        if weights is not self._weights:
            self._take(weights)
        self._launches[_INSERT] += 1
        if self.is_sparse:
            slots = now.index_slot_mapping
            plan.insert(
                qkv,
                now.positions,
                *self._fixed,
                now.slot_mapping,
                plan.q,
                index_slot_mapping=slots,
                **self._keywords,
            )
        else:
            plan.insert_dense(qkv, now.positions, *self._fixed, now.slot_mapping, plan.q, **self._keywords)
        return plan.q, plan.index_q

    def _take(self, weights: NormWeights) -> None:
        """Weights never change: what a launch takes of them is put together once."""
        cache = self._cache
        self._weights = weights
        self._fixed = (weights.cos_sin, weights.q, weights.k, cache.k, cache.v)
        self._keywords = dict(cache.scales)
        if self.is_sparse:
            self._keywords |= {
                "index_q_weight": weights.index_q,
                "index_k_weight": weights.index_k,
                "index_cache": cache.index,
            }

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
        """The blocks of each row, int32 [index_heads, rows, topk], in the state's buffer until the next call.

        index_q [rows, index_heads, index_dim].
        """
        now = self._now
        plan = now.plan
        self._launches[_SCORE] += 1
        plan.score(index_q, self._cache.index, now.index_block_table, now.seq_lens, plan.scores)
        self._launches[_SELECT] += 1
        plan.select(plan.scores, now.seq_lens, plan.ids)
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
        self._weights, self._fixed, self._keywords = None, (), {}
