"""`read`: from vLLM's configuration and loaded layers to the runtime's `Settings`, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from m3gen.integrations.vllm.options import Options
from m3gen.runtime import Feature, Limits, Refusal, RefusalCode, Settings
from m3gen.runtime.backend import live_architecture
from m3gen.spec import ModelSpec
from m3gen.targets import architecture

if TYPE_CHECKING:
    from m3gen.integrations.vllm.layers import SparseLayer

# vLLM's implementations that keep the caches as m3gen reads them and take prefill rows alone.
ATTENTION = ("MiniMaxM3SparseTritonImpl", "MiniMaxM3SparseMSAImpl")
INDEXERS = ("MiniMaxM3IndexerTritonImpl", "MiniMaxM3IndexerMSAImpl")
CACHES = ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3")


def read(
    config: Any, layers: Sequence[SparseLayer], device: torch.device, options: Options
) -> tuple[Settings | None, list[Refusal]]:
    """Settings of this rank, and the reasons that vLLM's side gives against m3gen; no settings without an arch."""
    refused = [*_model(config), *_cache(config), *_implementations(layers), *_engine(config)]
    live = live_architecture()
    arch = options.arch or live
    if arch is None:
        text = 'no GPU that m3gen knows is here: name an "arch", whose kernels Triton\'s interpreter then runs'
        return None, [*refused, Refusal(RefusalCode.DEVICE, text)]
    arch = architecture(arch).name
    if device.type != "cpu" and arch != live:
        refused.append(
            Refusal(RefusalCode.DEVICE, f"arch is {arch}, the GPU is {live or 'none that m3gen knows'}")
        )
    fp8 = "fp8" in config.cache_config.cache_dtype
    settings = Settings(
        spec=model_spec(config.model_config.hf_text_config),
        tensor_parallel=config.parallel_config.tensor_parallel_size,
        arch=arch,
        compute_units=_compute_units(device),
        device=device,
        dtype=config.model_config.dtype,
        kv_dtype=torch.uint8 if fp8 else layers[0].attention.kv_cache_torch_dtype,
        kv_scale="scalar" if fp8 else "none",
        index_dtype=layers[0].index_cache.dtype,
        limits=Limits(
            max_requests=config.scheduler_config.max_num_seqs,
            query_lens=query_lens(config),
            # Asked whenever a cache is bound: vLLM may shorten it to what memory allows.
            max_model_len=lambda: int(config.model_config.max_model_len),
        ),
        features=frozenset(features(config, layers)),
        norm=False,
        store=False,  # vLLM inserts by an operator of its own
        debug=options.debug,
    )
    return settings, refused


def model_spec(text: Any) -> ModelSpec:
    """The model that a text config describes, without its dense layers: they stay vLLM's, and need no kernels."""
    sparse: Mapping[str, Any] = text.sparse_attention_config
    return ModelSpec(
        name=str(getattr(text, "model_type", "MiniMax-M3")),
        layers=text.num_hidden_layers,
        dense_layers=0,
        hidden=text.hidden_size,
        q_heads=text.num_attention_heads,
        kv_heads=text.num_key_value_heads,
        head_dim=text.head_dim,
        rotary_dim=int(text.head_dim * text.partial_rotary_factor),
        rope_theta=float(text.rope_theta),
        rms_eps=text.rms_norm_eps,
        max_position=text.max_position_embeddings,
        index_heads=sparse["sparse_num_index_heads"],
        index_dim=sparse["sparse_index_dim"],
        topk=sparse["sparse_topk_blocks"],
        page_size=sparse["sparse_block_size"],
        init_blocks=sparse.get("sparse_init_block", 0),
        local_blocks=sparse.get("sparse_local_block", 0),
    )


def query_lens(config: Any) -> tuple[int, ...]:
    """One token, and under speculative decoding a token after all drafts. A batch whose requests all have the same
    smaller number of drafts runs stock."""
    speculative = config.speculative_config
    drafts = 0 if speculative is None else int(speculative.num_speculative_tokens or 0)
    return (1, 1 + drafts) if drafts else (1,)


def features(config: Any, layers: Sequence[SparseLayer]) -> Iterator[Feature]:
    """What is switched on of that which m3gen does not support."""
    parallel, attention = config.parallel_config, config.attention_config
    found = {
        Feature.LORA: config.lora_config is not None,
        Feature.SLEEP_MODE: config.model_config.enable_sleep_mode,
        Feature.CACHE_OFFLOAD: bool(config.cache_config.kv_offloading_size),
        Feature.CACHE_TRANSFER: config.kv_transfer_config is not None,
        Feature.WEIGHT_TRANSFER: config.weight_transfer_config is not None,
        Feature.DECODE_CONTEXT_PARALLEL: parallel.decode_context_parallel_size > 1,
        Feature.PREFILL_CONTEXT_PARALLEL: parallel.prefill_context_parallel_size > 1,
        Feature.INDEXER_CONTEXT_PARALLEL: getattr(attention, "minimax_m3_indexer_cp", False),
        Feature.INDEX_SHARING: any(getattr(layer.attention, "skip_index_topk", False) for layer in layers),
        Feature.UBATCHING: parallel.use_ubatching,
    }
    yield from (feature for feature, is_on in found.items() if is_on)


def _model(config: Any) -> Iterator[Refusal]:
    sparse = config.model_config.hf_text_config.sparse_attention_config
    if (score := sparse.get("sparse_score_type", "max")) != "max":
        yield Refusal(RefusalCode.SHAPE, f"sparse_score_type is {score!r}, expected 'max'")


def _cache(config: Any) -> Iterator[Refusal]:
    cache = config.cache_config
    page = config.model_config.hf_text_config.sparse_attention_config["sparse_block_size"]
    if cache.block_size is not None and cache.block_size % page:
        yield Refusal(RefusalCode.SHAPE, f"block_size is {cache.block_size}, expected a multiple of {page}")
    if cache.cache_dtype not in CACHES:
        yield Refusal(
            RefusalCode.DTYPE, f"kv_cache_dtype is {cache.cache_dtype!r}, expected one of {', '.join(CACHES)}"
        )


def _implementations(layers: Sequence[SparseLayer]) -> Iterator[Refusal]:
    for kind, expected, found in (
        ("attention", ATTENTION, {type(layer.attention.impl).__name__ for layer in layers}),
        ("indexer", INDEXERS, {type(layer.indexer).__name__ for layer in layers}),
    ):
        if other := sorted(found - set(expected)):
            text = f"the sparse layers' {kind} is {', '.join(other)}, expected {' or '.join(expected)}"
            yield Refusal(RefusalCode.FEATURE, text)
    if any(getattr(layer.attention.impl, "use_cutlass_decode", False) for layer in layers):
        text = "minimax_m3_msa_decode_backend is 'cutlass', which makes queries in fp8 only: expected 'triton'"
        yield Refusal(RefusalCode.FEATURE, text)


def _engine(config: Any) -> Iterator[Refusal]:
    if getattr(getattr(config, "kernel_config", None), "monokernel", None):
        text = "kernel_config.monokernel is on, which decides each step for itself: switch one of the two off"
        yield Refusal(RefusalCode.FEATURE, text)


def _compute_units(device: torch.device) -> int | None:
    if device.type != "cuda":
        return None
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
