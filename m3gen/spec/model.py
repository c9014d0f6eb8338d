"""`ModelSpec`: MiniMax-M3 as published, and its shards under tensor parallelism."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What one rank holds. `kv_replicas` ranks hold the same KV head when there are more ranks than heads."""

    tensor_parallel: int
    q_heads: int
    kv_heads: int
    index_heads: int
    kv_replicas: int

    @property
    def group_size(self) -> int:
        """Query heads per KV head on this rank."""
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Shape of a MiniMax-M3 model, sizes in elements and tokens.

    Defaults are the published text config of MiniMaxAI/MiniMax-M3 (config.json). The config classes of
    transformers (`MiniMaxM3VLTextConfig`) and vLLM (`MiniMaxM3TextConfig`) default to the same values but for
    `max_position`, where they keep the preview's 524288.
    """

    name: str = "MiniMax-M3"
    layers: int = 60
    dense_layers: int = 3  # layers 0 to 2: dense attention, dense MLP
    hidden: int = 6144
    q_heads: int = 64
    kv_heads: int = 4
    head_dim: int = 128
    rotary_dim: int = 64
    rope_theta: float = 5e6
    rms_eps: float = 1e-6
    max_position: int = 1048576
    index_heads: int = 4
    index_dim: int = 128
    topk: int = 16
    page_size: int = 128  # tokens per page, equal to the sparse block
    init_blocks: int = 0
    local_blocks: int = 1

    def __post_init__(self) -> None:
        if self.q_heads % self.kv_heads:
            raise ValueError(f"q_heads={self.q_heads} is no multiple of kv_heads={self.kv_heads}")
        if not 0 <= self.dense_layers <= self.layers:
            raise ValueError(f"dense_layers={self.dense_layers} is outside 0..{self.layers}")

    @property
    def group_size(self) -> int:
        """Query heads per KV head of the whole model."""
        return self.q_heads // self.kv_heads

    @property
    def softmax_scale(self) -> float:
        """head_dim ** -0.5."""
        return float(self.head_dim**-0.5)

    def shard(self, tensor_parallel: int) -> Shard:
        """What one of `tensor_parallel` ranks holds; `ValueError` when the heads do not divide.

        Query heads are divided; KV and index heads are divided as far as there are any and replicated beyond.
        """
        tp = tensor_parallel
        if tp < 1 or self.q_heads % tp:
            raise ValueError(f"tp={tp} does not divide the {self.q_heads} query heads")
        for kind, heads in (("KV", self.kv_heads), ("index", self.index_heads)):
            if heads % tp and tp % heads:
                raise ValueError(f"tp={tp} neither divides the {heads} {kind} heads nor is a multiple of them")
        return Shard(
            tensor_parallel=tp,
            q_heads=self.q_heads // tp,
            kv_heads=max(1, self.kv_heads // tp),
            index_heads=max(1, self.index_heads // tp),
            kv_replicas=max(1, tp // self.kv_heads),
        )


MINIMAX_M3 = ModelSpec()
