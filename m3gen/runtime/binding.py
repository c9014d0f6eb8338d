"""`CacheBinding`: the views of one allocation of the KV cache, named, checked, and identified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from m3gen.errors import UserError
from m3gen.runtime.settings import FP8_BYTES, Settings
from m3gen.spec import dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCache:
    """What an engine hands over for one layer. Strides are free but for the last, which is 1.

    `kv`       [pages, kv_heads, page, 2 * head_dim], K in the first half of the last dimension; or `k` and `v`
               apart, each [pages, kv_heads, page, head_dim]
    `index`    [pages, page, index_dim] in sparse layers, None in dense ones
    `k_scale`  fp32: one element ("scalar"), or [kv_heads, pages * page] ("per_token_head"); `v_scale` likewise
    """

    kv: torch.Tensor | None = None
    k: torch.Tensor | None = None
    v: torch.Tensor | None = None
    index: torch.Tensor | None = None
    k_scale: torch.Tensor | None = None
    v_scale: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class TensorIdentity:
    """What makes two tensors the same memory seen the same way. An address alone does not: an allocator may give
    it out again for another shape."""

    address: int
    elements: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # of the view in its storage, elements
    device: torch.device
    layout: str  # which part of the cache it is: "k", "v", "index", "k_scale", "v_scale"

    @classmethod
    def of(cls, tensor: torch.Tensor, layout: str) -> TensorIdentity:
        return cls(
            address=tensor.data_ptr(),
            elements=tensor.numel(),
            dtype=tensor.dtype,
            shape=tuple(tensor.shape),
            strides=tensor.stride(),
            offset=int(tensor.storage_offset()),
            device=tensor.device,
            layout=layout,
        )


@dataclass(frozen=True, slots=True)
class BoundLayer:
    """One layer's views, as the kernels take them. `scales` are keyword arguments of the launchers."""

    k: torch.Tensor
    v: torch.Tensor
    index: torch.Tensor | None
    scales: Mapping[str, torch.Tensor]

    def identity(self) -> tuple[TensorIdentity, ...]:
        named = {"k": self.k, "v": self.v, "index": self.index, **self.scales}
        return tuple(TensorIdentity.of(tensor, name) for name, tensor in named.items() if tensor is not None)


@dataclass(frozen=True, slots=True)
class CacheBinding:
    """The caches of all layers at one time. `generation` counts bindings of one state, from 1."""

    layers: Mapping[int, BoundLayer]
    profiling: bool
    generation: int

    def identity(self) -> Mapping[int, tuple[TensorIdentity, ...]]:
        return {layer: bound.identity() for layer, bound in self.layers.items()}


def bind(
    caches: Mapping[int, LayerCache], settings: Settings, *, profiling: bool, generation: int
) -> CacheBinding:
    """Check every tensor and view it as the kernels will.

    `UserError` with every fault there is: layer, part, what was found, what is needed.
    """
    faults: list[str] = []
    layers: dict[int, BoundLayer] = {}
    known = range(settings.spec.layers)
    for layer, cache in sorted(caches.items()):
        if layer not in known:
            faults.append(f"layer {layer}: the model has layers 0 to {len(known) - 1}")
            continue
        part = _Part(layer, settings, faults)
        k, v = part.main(cache)
        is_sparse = layer >= settings.spec.dense_layers
        index = part.index(cache.index, is_sparse)
        scales = part.scales(cache, None if k is None else k.shape[0])
        if k is not None and v is not None:
            layers[layer] = BoundLayer(k, v, index, scales)
    if not caches:
        faults.append("no layer has a cache")
    if faults:
        raise UserError("cannot bind the KV cache: " + "; ".join(faults))
    return CacheBinding(layers, profiling, generation)


class _Part:
    """The checks of one layer; faults are collected."""

    def __init__(self, layer: int, settings: Settings, faults: list[str]) -> None:
        self._layer, self._settings, self._faults = layer, settings, faults

    def main(self, cache: LayerCache) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """K and V as the cache holds them."""
        spec, heads = self._settings.spec, self._settings.shard.kv_heads
        shape = (None, heads, spec.page_size, spec.head_dim)
        if cache.kv is not None and cache.k is None and cache.v is None:
            wide = self._view("kv", cache.kv, self._settings.kv_name, (*shape[:3], 2 * spec.head_dim))
            return (None, None) if wide is None else (wide[..., : spec.head_dim], wide[..., spec.head_dim :])
        if cache.kv is not None or cache.k is None or cache.v is None:
            self._fault("kv", "give kv, or k and v, and not both")
            return None, None
        k = self._view("k", cache.k, self._settings.kv_name, shape)
        v = self._view("v", cache.v, self._settings.kv_name, shape)
        if k is not None and v is not None and k.shape != v.shape:
            self._fault("v", f"has {v.shape[0]} pages, k {k.shape[0]}")
        return k, v

    def index(self, index: torch.Tensor | None, is_sparse: bool) -> torch.Tensor | None:
        if index is None or not is_sparse:
            if (index is None) is is_sparse:
                self._fault("index", "is missing in a sparse layer" if is_sparse else "is given in a dense layer")
            return None
        spec = self._settings.spec
        return self._view("index", index, self._settings.index_name, (None, spec.page_size, spec.index_dim))

    def scales(self, cache: LayerCache, pages: int | None) -> dict[str, torch.Tensor]:
        kind, shard = self._settings.kv_scale, self._settings.shard
        found: dict[str, torch.Tensor] = {}
        for name, scale in (("k_scale", cache.k_scale), ("v_scale", cache.v_scale)):
            if (scale is not None) != (kind != "none"):
                self._fault(name, f"is {'given' if scale is not None else 'missing'}, scales are {kind!r}")
            elif scale is not None and kind == "scalar":
                if scale.numel() != 1:
                    self._fault(name, f"has {scale.numel()} elements, expected 1")
                elif (view := self._view(name, scale.reshape(1), "fp32", (1,))) is not None:
                    found[name] = view
            elif scale is not None and pages is not None:
                shape = (shard.kv_heads, pages * self._settings.spec.page_size)
                if (view := self._view(name, scale, "fp32", shape)) is not None:
                    found[name] = view
        return found

    def _view(
        self, name: str, tensor: torch.Tensor, wanted: str, shape: tuple[int | None, ...]
    ) -> torch.Tensor | None:
        """The tensor, raw bytes as the fp8 of the arch; None and faults when it is not as it must be."""
        before = len(self._faults)
        if dtype(wanted).is_fp8 and tensor.dtype is torch.uint8:
            tensor = tensor.view(dtype(wanted).torch())
        if tensor.dtype != dtype(wanted).torch():
            other = tensor.dtype in FP8_BYTES and dtype(wanted).is_fp8
            dialect = f", the fp8 of {self._settings.arch}" if other else ""
            self._fault(name, f"is {tensor.dtype}, expected {dtype(wanted).torch()}{dialect}")
        if tensor.dim() != len(shape) or any(w not in (None, s) for w, s in zip(shape, tensor.shape, strict=True)):
            expected = ", ".join("pages" if want is None else str(want) for want in shape)
            self._fault(name, f"has shape {list(tensor.shape)}, expected [{expected}]")
        elif not tensor.shape[0]:
            self._fault(name, "has no page")
        if tensor.device != self._settings.device:
            self._fault(name, f"is on {tensor.device}, expected {self._settings.device}")
        if tensor.dim() and tensor.stride(-1) != 1:
            self._fault(name, f"has last stride {tensor.stride(-1)}, expected 1")
        return tensor if len(self._faults) == before else None

    def _fault(self, name: str, text: str) -> None:
        self._faults.append(f"layer {self._layer}, {name} {text}")
