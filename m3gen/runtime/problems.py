"""The problems of one rank's decode: what each op is asked for, by op and by query length."""

from __future__ import annotations

from dataclasses import replace

from m3gen.runtime.settings import Settings
from m3gen.spec import CONTEXT_BUCKETS, Problem, bucket

SPARSE = ("index_select", "sparse_decode")
DENSE = ("dense_decode",)
NORM, STORE = "qk_norm_rope_insert", "kv_insert"


def ops_of(settings: Settings) -> tuple[str, ...]:
    """The ops that the model's layers need."""
    spec = settings.spec
    attention = (SPARSE if spec.layers > spec.dense_layers else ()) + (DENSE if spec.dense_layers else ())
    insert = (NORM,) if settings.norm else (STORE,) if settings.store else ()
    return (*insert, *attention)


def problem(op: str, settings: Settings, query_len: int) -> Problem:
    """One op on this rank's shapes at the smallest load, as `m3gen.ops` states it for tuning."""
    spec, shard = settings.spec, settings.shard
    attention = Problem(
        op=op,
        arch=settings.arch,
        compute_units=settings.units,
        q_dtype=settings.q_name,
        kv_dtype=settings.kv_name,
        kv_scale=settings.kv_scale,
        group_size=shard.group_size,
        kv_heads=shard.kv_heads,
        head_dim=spec.head_dim,
        page_size=spec.page_size,
        topk=spec.topk,
        query_len=query_len,
        context=bucket(settings.limits.model_len(), CONTEXT_BUCKETS),
    )
    index = replace(attention, kv_scale="none", group_size=shard.index_heads, kv_heads=1, head_dim=spec.index_dim)
    if op == "index_select":
        return replace(index, q_dtype=settings.index_q_name, kv_dtype=settings.index_name)
    if op in (NORM, STORE):  # they know tokens, not sequences
        return replace(attention, query_len=1, context=CONTEXT_BUCKETS[0])
    return attention
