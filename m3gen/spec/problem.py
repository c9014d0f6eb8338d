"""`Problem`: one op on one shape for one GPU, only what the runtime can observe."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from m3gen.spec.buckets import CONTEXT_BUCKETS, ROW_BUCKETS, bucket
from m3gen.spec.dtypes import dtype

KV_SCALES = ("none", "scalar", "per_token_head")

_NAMES = ("op", "arch", "q_dtype", "kv_dtype", "kv_scale")
_SHAPE = ("compute_units", "group_size", "kv_heads", "head_dim", "page_size", "topk", "query_len")
_LOAD = {"rows": ROW_BUCKETS, "context": CONTEXT_BUCKETS}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One op on one shape.

    `op`             name of the op, e.g. "sparse_decode"
    `arch`           architecture, e.g. "gfx942"
    `compute_units`  compute units (AMD) or SMs (NVIDIA) of the device
    `q_dtype`        dtype of queries and output ("bf16", "fp16", "fp32")
    `kv_dtype`       dtype of the KV cache by variant ("bf16", "e4m3fn", "e4m3fnuz", ...)
    `kv_scale`       "none", "scalar" (one fp32 per cache) or "per_token_head" (fp32 [kv_heads, tokens])
    `group_size`     query heads per KV head
    `kv_heads`       KV heads on this rank
    `head_dim`       elements per head
    `page_size`      tokens per page; equals the sparse block
    `topk`           selected blocks per query row
    `query_len`      query tokens per request (over 1 under speculative decoding)
    `rows`           query rows in the batch, a bucket of `ROW_BUCKETS`
    `context`        tokens of context, a bucket of `CONTEXT_BUCKETS`

    Raises `ValueError` naming the field when a value is outside its domain.
    """

    op: str
    arch: str
    compute_units: int
    q_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    kv_scale: str = "none"
    group_size: int = 16
    kv_heads: int = 1
    head_dim: int = 128
    page_size: int = 128
    topk: int = 16
    query_len: int = 1
    rows: int = 1
    context: int = 8192

    def __post_init__(self) -> None:
        # Types are checked strictly: 1, 1.0 and True are equal, but their JSON and so their shas are not.
        for name in _NAMES:
            value = getattr(self, name)
            if type(value) is not str or not value:
                raise ValueError(f"{name}={value!r}: expected a name")
        for name in (*_SHAPE, *_LOAD):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name}={value!r}: expected a positive integer")
        for name in ("q_dtype", "kv_dtype"):
            try:
                dtype(getattr(self, name))
            except KeyError as error:
                raise ValueError(f"{name}: {error.args[0]}") from None
        if self.kv_scale not in KV_SCALES:
            raise ValueError(f"kv_scale={self.kv_scale!r}: expected one of {', '.join(KV_SCALES)}")
        self._check_load()

    def _check_load(self) -> None:
        for name, edges in _LOAD.items():
            if getattr(self, name) not in edges:
                raise ValueError(f"{name}={getattr(self, name)}: expected a bucket of {edges}; use with_load")

    @property
    def q_heads(self) -> int:
        """Query heads on this rank."""
        return self.group_size * self.kv_heads

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Problem:
        """Inverse of `to_dict`; `ValueError` on unknown or missing fields."""
        if unknown := sorted(data.keys() - cls.__dataclass_fields__.keys()):
            raise ValueError(f"unknown problem fields: {', '.join(unknown)}")
        try:
            return cls(**data)
        except TypeError as error:
            raise ValueError(f"incomplete problem: {error}") from None

    def canonical_json(self) -> str:
        """Sorted keys, no blanks: equal problems have equal text."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @property
    def sha(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex digits."""
        return _sha(self)

    def with_load(self, rows: int, context: int | None = None) -> Problem:
        """The same problem under another load, each figure rounded up to its bucket.

        Raises `ValueError` naming the figure that is under 1 or over the last bucket.
        """
        return replace(
            self,
            rows=_rounded("rows", rows),
            context=self.context if context is None else _rounded("context", context),
        )


@lru_cache(maxsize=4096)
def _sha(problem: Problem) -> str:
    """Sessions ask for those of hundreds of problems several times a second."""
    return hashlib.sha256(problem.canonical_json().encode()).hexdigest()


class ExactProblem(Problem):
    """A problem under a load that need be no bucket: what somebody timed. No table holds one."""

    __slots__ = ()

    def _check_load(self) -> None:
        """Every load of one or more is its own."""

    @classmethod
    def of(cls, problem: Problem, rows: int, context: int) -> ExactProblem:
        """`problem` under just this load; `ValueError` naming a figure under 1."""
        return cls(**{**problem.to_dict(), "rows": rows, "context": context})


def _rounded(name: str, value: int) -> int:
    try:
        return bucket(value, _LOAD[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
