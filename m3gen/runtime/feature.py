"""`Feature`: what an engine may have switched on that the specialised path does not support."""

from __future__ import annotations

from enum import StrEnum


class Feature(StrEnum):
    """Each with the reason for its refusal."""

    LORA = "LoRA"
    SLEEP_MODE = "sleep mode"
    CACHE_OFFLOAD = "cache offload"
    CACHE_TRANSFER = "a KV connector"
    WEIGHT_TRANSFER = "weight transfer"
    DECODE_CONTEXT_PARALLEL = "decode context parallelism"
    PREFILL_CONTEXT_PARALLEL = "prefill context parallelism"
    INDEXER_CONTEXT_PARALLEL = "the context-parallel indexer"
    INDEX_SHARING = "index sharing between layers"
    UBATCHING = "micro-batches that overlap"

    @property
    def why(self) -> str:
        return _WHY[self]


_WHY = {
    Feature.LORA: "adapters change the fused QKV rows between the projection and the norm",
    Feature.SLEEP_MODE: "it frees the memory behind cache views and buffers at fixed addresses",
    Feature.CACHE_OFFLOAD: "it moves pages without their index keys and scales",
    Feature.CACHE_TRANSFER: "it moves pages without their index keys and scales",
    Feature.WEIGHT_TRANSFER: "norm weights are read at addresses fixed before the first step",
    Feature.DECODE_CONTEXT_PARALLEL: "a rank would see only its part of a context",
    Feature.PREFILL_CONTEXT_PARALLEL: "a rank would see only its part of a context",
    Feature.INDEXER_CONTEXT_PARALLEL: "selection would have to be merged between ranks",
    Feature.INDEX_SHARING: "every sparse layer selects for itself",
    Feature.UBATCHING: "two batches at once would share one workspace",
}
