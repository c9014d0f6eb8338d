"""vLLM's GPU-only operators of MiniMax-M3 in plain torch, by their signatures; slow, fp32 inside.

`DECODE_ROWS` counts the query rows that the stock decode operators served: none, where m3gen serves them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

BLOCK = 128
DECODE_ROWS: Counter[str] = Counter()


def _gemma(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight.float())


def rms_norm(self: Any, x: Tensor, residual: Tensor | None = None) -> Any:
    """Gemma RMSNorm; with `residual`, of the sum, which is returned too."""
    if residual is None:
        return _gemma(x, self.weight, self.variance_epsilon).to(x.dtype)
    total = x + residual
    return _gemma(total, self.weight, self.variance_epsilon).to(x.dtype), total


def _rotated(x: Tensor, cos_sin: Tensor, rotary_dim: int) -> Tensor:
    """NeoX RoPE of x [tokens, heads, dim] on its first `rotary_dim` elements."""
    half = rotary_dim // 2
    cos, sin = cos_sin[:, None, :half].float(), cos_sin[:, None, half:].float()
    low, high = x[..., :half], x[..., half:rotary_dim]
    return torch.cat([low * cos - high * sin, high * cos + low * sin, x[..., rotary_dim:]], -1)


def _insert(cache: Tensor, slots: Tensor, rows: Tensor) -> None:
    """cache [blocks, ..., BLOCK, dim] at the slots that are not negative; rows [tokens, ..., dim]."""
    live = slots >= 0
    blocks, offsets = slots[live] // BLOCK, slots[live] % BLOCK
    cache.movedim(-2, 1)[blocks, offsets] = rows[live].to(cache.dtype)


def norm_rope_insert(
    qkv: Tensor,
    q_norm_weight: Tensor,
    k_norm_weight: Tensor,
    cos_sin_cache: Tensor,
    positions: Tensor,
    num_heads: int,
    num_kv_heads: int,
    rotary_dim: int,
    eps: float,
    index_q_norm_weight: Tensor | None = None,
    index_k_norm_weight: Tensor | None = None,
    num_index_heads: int = 0,
    slot_mapping: Tensor | None = None,
    index_slot_mapping: Tensor | None = None,
    kv_cache: Tensor | None = None,
    index_cache: Tensor | None = None,
    block_size: int = 0,
    q_out: Tensor | None = None,
    index_q_out: Tensor | None = None,
    kv_cache_dtype: str = "auto",
    **unused: Any,
) -> None:
    """In place, except q and index q where buffers are given; into the caches, where they are given."""
    assert kv_cache_dtype in ("auto", "bfloat16", "float16"), f"{kv_cache_dtype} is not in the stand"
    heads = qkv.unflatten(1, (-1, q_norm_weight.shape[0]))
    tokens = qkv.shape[0]
    cos_sin = cos_sin_cache[positions[:tokens]]
    sizes = [num_heads, num_kv_heads, num_kv_heads, *([num_index_heads, 1] if num_index_heads else [])]
    q, k, v, *index = heads.split(sizes, 1)

    def ready(x: Tensor, weight: Tensor) -> Tensor:
        return _rotated(_gemma(x, weight, eps), cos_sin, rotary_dim)

    done_q, done_k = ready(q, q_norm_weight), ready(k, k_norm_weight)
    (q if q_out is None else q_out.view(q.shape)).copy_(done_q)
    k.copy_(done_k)
    if kv_cache is not None and slot_mapping is not None:
        _insert(kv_cache, slot_mapping[:tokens], torch.cat([k, v], -1))
    if index:
        assert index_q_norm_weight is not None
        assert index_k_norm_weight is not None
        index_q, index_k = index
        done_index_q = ready(index_q, index_q_norm_weight)
        (index_q if index_q_out is None else index_q_out.view(index_q.shape)).copy_(done_index_q)
        index_k.copy_(ready(index_k, index_k_norm_weight))
        if index_cache is not None:
            slots = slot_mapping if index_slot_mapping is None else index_slot_mapping
            assert slots is not None
            _insert(index_cache, slots[:tokens], index_k.squeeze(1))


def _requests(
    cu_seqlens_q: Tensor, seq_lens: Tensor, prefix_lens: Tensor
) -> Iterator[tuple[int, slice, int, Tensor]]:
    """Of each request with queries: its row, its query rows, its length, the position of each query row."""
    edges = cu_seqlens_q.tolist()
    for row, (begin, end) in enumerate(pairwise(edges)):
        if end > begin:
            yield row, slice(begin, end), int(seq_lens[row]), int(prefix_lens[row]) + torch.arange(end - begin)


def _pages(cache: Tensor, block_table: Tensor, length: int) -> Tensor:
    """The first `length` tokens of a request: cache [blocks, ..., BLOCK, dim] to [tokens, ..., dim], fp32."""
    pages = cache[block_table[: -(-length // BLOCK)].long()]
    return pages.movedim(-2, 1).flatten(0, 1)[:length].float()


def index_score(
    idx_q: Tensor,
    index_kv_cache: Tensor,
    block_table: Tensor,
    cu_seqlens_q: Tensor,
    seq_lens: Tensor,
    prefix_lens: Tensor,
    max_query_len: int,
    max_seq_len: int,
    num_kv_heads: int,
) -> Tensor:
    """fp32 [heads, rows, blocks]; -inf for blocks that a row does not see."""
    blocks = -(-max_seq_len // BLOCK)
    score = torch.full((idx_q.shape[1], idx_q.shape[0], blocks), float("-inf"))
    for row, rows, length, positions in _requests(cu_seqlens_q, seq_lens, prefix_lens):
        keys = _pages(index_kv_cache, block_table[row], length)
        products = torch.einsum("qhd,kd->hqk", idx_q[rows].float(), keys)
        products.masked_fill_(torch.arange(length) > positions[:, None], float("-inf"))
        count = -(-length // BLOCK)
        padded = torch.nn.functional.pad(products, (0, count * BLOCK - length), value=float("-inf"))
        score[:, rows, :count] = padded.unflatten(-1, (count, BLOCK)).amax(-1)
    return score


def index_topk(
    score: Tensor,
    cu_seqlens_q: Tensor,
    prefix_lens: Tensor,
    max_query_len: int,
    topk: int,
    init_blocks: int,
    local_blocks: int,
    out: Tensor | None = None,
) -> Tensor:
    """Ids int32 [heads, rows, topk] by descending score, init and local blocks before all; -1 past the last."""
    ids = score.new_full((*score.shape[:2], topk), -1, dtype=torch.int32)
    blocks = torch.arange(score.shape[-1])
    for _, rows, _, positions in _requests(cu_seqlens_q, prefix_lens, prefix_lens):
        count = positions[:, None] // BLOCK + 1
        ranked = score[:, rows].clone()
        visible = blocks < count
        ranked.masked_fill_(visible & (blocks < init_blocks), 1e30)
        ranked.masked_fill_(visible & (blocks >= count - local_blocks), 1e29)
        values, order = ranked.masked_fill(~visible, float("-inf")).sort(dim=-1, descending=True, stable=True)
        chosen = order.to(torch.int32).masked_fill(values == float("-inf"), -1)[..., :topk]
        ids[:, rows, : chosen.shape[-1]] = chosen
    if out is None:
        return ids
    out[:, : ids.shape[1]] = ids
    return out[:, : ids.shape[1]]


def sparse_attention(
    q: Tensor,
    kv_cache: Tensor,
    topk_idx: Tensor,
    block_table: Tensor,
    cu_seqlens_q: Tensor,
    seq_lens: Tensor,
    prefix_lens: Tensor,
    max_query_len: int,
    num_kv_heads: int,
    sm_scale: float,
    output: Tensor,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> None:
    """Causal attention of each row over the blocks in its list."""
    for row, rows, length, positions in _requests(cu_seqlens_q, seq_lens, prefix_lens):
        keys, values = _pages(kv_cache, block_table[row], length).chunk(2, -1)  # [tokens, kv heads, dim]
        tokens = torch.arange(length)
        selected = (topk_idx[:, rows, :, None] == tokens // BLOCK).any(2)  # [kv heads, rows, tokens]
        seen = selected & (tokens <= positions[:, None])
        grouped = q[rows].float().unflatten(1, (num_kv_heads, -1))  # [rows, kv heads, group, dim]
        logits = torch.einsum("qhgd,khd->hgqk", grouped, keys) * sm_scale
        weights = logits.masked_fill(~seen[:, None], float("-inf")).softmax(-1)
        output[rows] = torch.einsum("hgqk,khd->qhgd", weights, values).flatten(1, 2).to(output.dtype)


def _uniform(seq_lens: Tensor, query_len: int) -> tuple[Tensor, Tensor]:
    """cu_seqlens_q and prefix_lens of decode rows."""
    return torch.arange(seq_lens.shape[0] + 1) * query_len, seq_lens - query_len


def index_decode(
    idx_q: Tensor,
    index_kv_cache: Tensor,
    block_table: Tensor,
    seq_lens: Tensor,
    max_seq_len: int,
    topk: int,
    init_blocks: int,
    local_blocks: int,
    num_kv_heads: int,
    decode_query_len: int,
    max_decode_query_len: int,
    out: Tensor | None = None,
    **unused: Any,
) -> Tensor:
    DECODE_ROWS["index"] += idx_q.shape[0]
    cu, prefix = _uniform(seq_lens, decode_query_len)
    score = index_score(
        idx_q, index_kv_cache, block_table, cu, seq_lens, prefix, decode_query_len, max_seq_len, num_kv_heads
    )
    return index_topk(score, cu, prefix, decode_query_len, topk, init_blocks, local_blocks, out)


def sparse_attention_decode(
    q: Tensor,
    kv_cache: Tensor,
    topk_idx: Tensor,
    block_table: Tensor,
    seq_lens: Tensor,
    num_kv_heads: int,
    sm_scale: float,
    output: Tensor,
    decode_query_len: int,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> None:
    DECODE_ROWS["attention"] += q.shape[0]
    cu, prefix = _uniform(seq_lens, decode_query_len)
    sparse_attention(
        q,
        kv_cache,
        topk_idx,
        block_table,
        cu,
        seq_lens,
        prefix,
        decode_query_len,
        num_kv_heads,
        sm_scale,
        output,
    )
