"""What m3gen takes from transformers, and its refusals: versions, models, shapes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Any

import torch

from m3gen.errors import UserError
from m3gen.spec import ModelSpec

TESTED = ("5.24", "5.25")  # from the first, up to but without the second
MODEL_TYPE = "minimax_m3_vl_text"
SPARSE, DENSE = "minimax_m3_sparse", "full_attention"
BLOCK = HEAD_DIM = 128  # of a page, a block of the indexer, a head; all the kernels know


def check_version() -> None:
    """Raise `UserError` when transformers is absent or outside `TESTED`."""
    needed = f"needed: >={TESTED[0]},<{TESTED[1]}; pip install 'm3gen[transformers]'"
    try:
        found = metadata.version("transformers")
    except metadata.PackageNotFoundError:
        raise UserError(f"transformers is not installed; {needed}") from None
    if not _release(TESTED[0]) <= _release(found) < _release(TESTED[1]):
        raise UserError(f"transformers {found} is outside the versions m3gen has run with; {needed}")


def model_spec(config: Any) -> ModelSpec:
    """The shape of a MiniMax-M3 text config; `UserError` with everything in it that m3gen does not take."""
    if refusals := list(_refusals(config)):
        raise UserError(f"m3gen cannot decode this model: {'; '.join(refusals)}")
    rope = config.rope_parameters
    return ModelSpec(
        name=config.model_type,
        layers=config.num_hidden_layers,
        dense_layers=config.layer_types.count(DENSE),
        hidden=config.hidden_size,
        q_heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        rotary_dim=int(config.head_dim * rope.get("partial_rotary_factor", 1.0)),
        rope_theta=rope["rope_theta"],
        rms_eps=config.rms_norm_eps,
        max_position=config.max_position_embeddings,
        index_heads=config.index_n_heads,
        index_dim=config.index_head_dim,
        topk=config.index_topk_blocks,
        page_size=config.index_block_size,
        init_blocks=0,
        local_blocks=config.index_local_blocks,
    )


def placement(model: torch.nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where a model lies and the dtype of its activations; `UserError` when it is in more than one place."""
    devices = {parameter.device for parameter in model.parameters()}
    if len(devices) != 1:
        found = ", ".join(sorted(map(str, devices)))
        raise UserError(f"m3gen cannot decode this model: it lies on {found}, needed: one device")
    return devices.pop(), next(model.parameters()).dtype


def _refusals(config: Any) -> Iterator[str]:
    if config.model_type != MODEL_TYPE:
        yield f"model type {config.model_type}, needed: {MODEL_TYPE}"
        return  # nothing below means anything elsewhere
    for name, needed in (
        ("head_dim", HEAD_DIM),
        ("index_head_dim", HEAD_DIM),
        ("index_block_size", BLOCK),
        ("index_n_heads", config.num_key_value_heads),
        ("attention_dropout", 0),
    ):
        if (found := getattr(config, name)) != needed:
            yield f"{name} {found}, needed: {needed}"
    dense = config.layer_types.count(DENSE)
    if config.layer_types != [DENSE] * dense + [SPARSE] * (config.num_hidden_layers - dense):
        yield f"layer_types {config.layer_types}, needed: {DENSE} layers first, {SPARSE} after them, no others"
    if (window := getattr(config, "sliding_window", None)) is not None:
        yield f"sliding_window {window}, needed: none"


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
