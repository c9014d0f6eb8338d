"""`ModelSpec`: MiniMax-M3 as published, and what each rank holds under tensor parallelism."""

from __future__ import annotations

import pytest

from m3gen.spec import MINIMAX_M3, ModelSpec

# tp -> (query heads, KV heads, index heads, ranks per KV head, query heads per KV head, rows of the fused
# sparse projection, bytes of a bf16 KV page): what vLLM's MiniMax-M3 loads on each rank.
SHARDS = {
    1: (64, 4, 4, 1, 16, 9856, 262144),
    2: (32, 2, 2, 1, 16, 4992, 131072),
    4: (16, 1, 1, 1, 16, 2560, 65536),
    8: (8, 1, 1, 2, 8, 1536, 65536),
    16: (4, 1, 1, 4, 4, 1024, 65536),
}


@pytest.mark.parametrize("tp", SHARDS)
def test_shards(tp: int) -> None:
    m, shard = MINIMAX_M3, MINIMAX_M3.shard(tp)
    q_k_v = (shard.q_heads + 2 * shard.kv_heads) * m.head_dim
    index = (shard.index_heads + 1) * m.index_dim  # one index key, held by every rank
    page = 2 * m.page_size * shard.kv_heads * m.head_dim * 2
    assert shard.tensor_parallel == tp
    assert SHARDS[tp] == (
        shard.q_heads,
        shard.kv_heads,
        shard.index_heads,
        shard.kv_replicas,
        shard.group_size,
        q_k_v + index,
        page,
    )


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 32, 64])
def test_ranks_hold_the_whole_model_between_them(tp: int) -> None:
    shard = MINIMAX_M3.shard(tp)
    assert shard.q_heads * tp == MINIMAX_M3.q_heads
    assert shard.kv_heads * tp == MINIMAX_M3.kv_heads * shard.kv_replicas


@pytest.mark.parametrize("tp", [-1, 0, 3, 6, 12, 128])
def test_a_split_that_does_not_divide_is_refused(tp: int) -> None:
    with pytest.raises(ValueError, match=f"tp={tp} "):
        MINIMAX_M3.shard(tp)


@pytest.mark.parametrize(("heads", "kind"), [("kv_heads", "KV"), ("index_heads", "index")])
def test_heads_that_neither_divide_nor_replicate_are_refused(heads: str, kind: str) -> None:
    spec = ModelSpec(q_heads=96, **{heads: 6})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"tp=4 neither divides the 6 {kind} heads"):
        spec.shard(4)


def test_published_figures() -> None:
    m = MINIMAX_M3
    assert (m.layers, m.dense_layers, m.hidden) == (60, 3, 6144)
    assert m.group_size == 16
    assert m.softmax_scale == 0.08838834764831845
    assert m.topk * m.page_size == 2048
    assert m.max_position == 1 << 20


@pytest.mark.parametrize(("name", "value"), [("kv_heads", 5), ("dense_layers", 61), ("dense_layers", -1)])
def test_a_model_that_cannot_be_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        ModelSpec(**{name: value})  # type: ignore[arg-type]
