"""What work is: the model, its shards, and problems."""

from m3gen.spec.buckets import CONTEXT_BUCKETS, ROW_BUCKETS, bucket
from m3gen.spec.dtypes import DTYPES, DType, dtype
from m3gen.spec.model import MINIMAX_M3, ModelSpec, Shard
from m3gen.spec.problem import KV_SCALES, ExactProblem, Problem
from m3gen.spec.status import Status

__all__ = [
    "CONTEXT_BUCKETS",
    "DTYPES",
    "KV_SCALES",
    "MINIMAX_M3",
    "ROW_BUCKETS",
    "DType",
    "ExactProblem",
    "ModelSpec",
    "Problem",
    "Shard",
    "Status",
    "bucket",
    "dtype",
]
