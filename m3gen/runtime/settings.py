"""`Settings`: what a `ModelState` is built for, as the engine knows it after the weights are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from m3gen.runtime.feature import Feature
from m3gen.spec import DTYPES, MINIMAX_M3, ModelSpec, Shard
from m3gen.targets import architecture, default_device

FP8_BYTES = (torch.uint8, torch.float8_e4m3fn, torch.float8_e4m3fnuz)
_NAMES = {one.torch(): name for name, one in DTYPES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a step may be.

    `max_requests`   decode requests of one step, padding included
    `query_lens`     tokens of a decode request: 1, and 1 + drafts under speculative decoding
    `max_model_len`  tokens of a sequence; a callable is asked again whenever a cache is bound, for engines that
                     fit it to memory after construction
    `capture_requests`  numbers of decode requests that graphs are captured for; empty: any
    """

    max_requests: int
    query_lens: tuple[int, ...] = (1,)
    max_model_len: int | Callable[[], int]
    capture_requests: tuple[int, ...] = ()

    def model_len(self) -> int:
        return self.max_model_len() if callable(self.max_model_len) else self.max_model_len


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One rank's model, device, dtypes and limits.

    `arch`           whose kernels run; without that GPU they run in Triton's interpreter, on the CPU
    `compute_units`  of the device; None: of the arch's default device
    `dtype`          of activations
    `kv_dtype`       of the main cache; `torch.uint8` stands for the arch's own e4m3
    `kv_scale`       "none", "scalar" or "per_token_head"
    `index_dtype`    of the index cache; None: as `dtype`. Index queries are fp8 beside fp8 keys, else in `dtype`
    `features`       what the engine has switched on of `Feature`
    `norm`           whether layers get fused QKV rows; else the engine norms and rotates by itself
    `store`          without `norm`: whether rows are stored through `DecodeLayer.store`; else the engine stores them
    `debug`          hold every launch against its contract, and watch outputs and inputs for `health`
    """

    arch: str
    limits: Limits
    spec: ModelSpec = MINIMAX_M3
    tensor_parallel: int = 1
    compute_units: int | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.bfloat16
    kv_dtype: torch.dtype = torch.bfloat16
    kv_scale: str = "none"
    index_dtype: torch.dtype | None = None
    features: frozenset[Feature] = frozenset()
    norm: bool = True
    store: bool = True
    debug: bool = False

    @property
    def shard(self) -> Shard:
        """`ValueError` when the heads do not divide."""
        return self.spec.shard(self.tensor_parallel)

    @property
    def units(self) -> int:
        return self.compute_units or default_device(self.arch).compute_units

    @property
    def fp8(self) -> str:
        """The arch's dialect of e4m3."""
        return architecture(self.arch).fp8

    @property
    def q_name(self) -> str:
        return dtype_name(self.dtype)

    @property
    def kv_name(self) -> str:
        return self.fp8 if self.kv_dtype is torch.uint8 else dtype_name(self.kv_dtype)

    @property
    def index_name(self) -> str:
        of = self.dtype if self.index_dtype is None else self.index_dtype
        return self.fp8 if of is torch.uint8 else dtype_name(of)

    @property
    def index_q_name(self) -> str:
        return self.index_name if DTYPES[self.index_name].is_fp8 else self.q_name


def dtype_name(of: torch.dtype) -> str:
    """Its name in problems; `KeyError` when no kernel knows it."""
    return _NAMES[of]
