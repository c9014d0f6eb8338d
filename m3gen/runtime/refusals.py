"""What speaks against the specialised path before anything is allocated: every reason, not the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import triton

from m3gen.errors import UserError
from m3gen.interpreter import versions
from m3gen.runtime.backend import Place
from m3gen.runtime.refusal import Refusal, RefusalCode
from m3gen.runtime.settings import Settings, dtype_name
from m3gen.spec import CONTEXT_BUCKETS, KV_SCALES, ModelSpec, dtype

_ACTIVATIONS = (torch.bfloat16, torch.float16, torch.float32)
_MOST_ROWS = 1 << 16  # a grid's second and third dimension


def refusals(settings: Settings, place: Place) -> Iterator[Refusal]:
    """All but what the tables say."""
    checks: tuple[Callable[[Settings], Iterator[Refusal]], ...] = (_shard, _shape, _dtypes, _limits, _features)
    for check in checks:
        yield from check(settings)
    yield from _device(settings, place)


def _shard(settings: Settings) -> Iterator[Refusal]:
    try:
        shard = settings.shard
    except ValueError as error:
        yield Refusal(RefusalCode.SHARD, str(error))
        return
    spec = settings.spec
    if spec.layers > spec.dense_layers and shard.index_heads != shard.kv_heads:
        yield Refusal(
            RefusalCode.SHARD,
            f"{shard.index_heads} index heads a rank, expected its {shard.kv_heads} KV heads: one selection each",
        )


def _shape(settings: Settings) -> Iterator[Refusal]:
    """The kernels are MiniMax-M3's: what is a constant in their text must be that."""
    spec = settings.spec
    for name in ("page_size", "head_dim", "rotary_dim", "index_dim"):
        found, needed = getattr(spec, name), getattr(ModelSpec(), name)
        if found != needed and (name != "rotary_dim" or settings.norm):
            yield Refusal(RefusalCode.SHAPE, f"{name} is {found}, expected {needed}")


def _dtypes(settings: Settings) -> Iterator[Refusal]:
    if settings.dtype not in _ACTIVATIONS:
        names = ", ".join(dtype_name(one) for one in _ACTIVATIONS)
        yield Refusal(RefusalCode.DTYPE, f"activations are {settings.dtype}, expected one of {names}")
    own = dtype(settings.fp8).torch()
    for name, found in (("KV cache", settings.kv_dtype), ("index cache", settings.index_dtype)):
        allowed = (own, torch.uint8, *_ACTIVATIONS)
        if found is not None and found not in allowed:
            words = ", ".join(str(one) for one in allowed)
            yield Refusal(RefusalCode.DTYPE, f"the {name} is {found}, expected one of {words} on {settings.arch}")
    if settings.kv_scale not in KV_SCALES:
        names = ", ".join(KV_SCALES)
        yield Refusal(RefusalCode.DTYPE, f"kv_scale is {settings.kv_scale!r}, expected one of {names}")


def _limits(settings: Settings) -> Iterator[Refusal]:
    limits = settings.limits
    if limits.max_requests < 1:
        yield Refusal(RefusalCode.LIMITS, f"max_requests is {limits.max_requests}, expected 1 or more")
    if not limits.query_lens or min(limits.query_lens) < 1:
        yield Refusal(RefusalCode.LIMITS, f"query_lens is {limits.query_lens}, expected lengths of 1 or more")
    elif limits.max_requests * max(limits.query_lens) > _MOST_ROWS:
        rows = limits.max_requests * max(limits.query_lens)
        yield Refusal(RefusalCode.LIMITS, f"{rows} query rows a step, expected at most {_MOST_ROWS}")
    if not 1 <= (longest := limits.model_len()) <= CONTEXT_BUCKETS[-1]:
        yield Refusal(RefusalCode.LIMITS, f"max_model_len is {longest}, expected 1 to {CONTEXT_BUCKETS[-1]}")
    if over := [n for n in limits.capture_requests if not 0 < n <= limits.max_requests]:
        yield Refusal(
            RefusalCode.LIMITS, f"a graph of {over[0]} requests, expected 1 to max_requests={limits.max_requests}"
        )


def _features(settings: Settings) -> Iterator[Refusal]:
    for feature in sorted(settings.features):
        yield Refusal(RefusalCode.FEATURE, f"{feature.value} is on and not supported: {feature.why}")


def _device(settings: Settings, place: Place) -> Iterator[Refusal]:
    if place is Place.INTERPRETER:
        try:
            versions.check(triton.__version__)
        except UserError as error:
            yield Refusal(RefusalCode.VERSION, str(error))
    elif place is Place.GPU and settings.device.type != "cuda":
        yield Refusal(
            RefusalCode.DEVICE,
            f"the model is on {settings.device}, expected the GPU ({settings.arch}) that is here",
        )
    version = tuple(int(part) for part in triton.__version__.split("+")[0].split(".")[:2])
    if version < (3, 6):
        yield Refusal(RefusalCode.VERSION, f"Triton is {triton.__version__}, expected 3.6 or later")
