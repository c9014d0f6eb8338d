"""`register`: what vLLM calls in every process, again and again."""

from __future__ import annotations

import os

from m3gen.errors import UserError
from m3gen.integrations.vllm import versions

SWITCH = "M3GEN_VLLM"
MODELS = {
    "MiniMaxM3SparseForCausalLM": "m3gen.integrations.vllm.model:M3genForCausalLM",
    # Registered for itself: on NVIDIA the model of text and images does not ask the text model for its state.
    "MiniMaxM3SparseForConditionalGeneration": "m3gen.integrations.vllm.model:M3genForConditionalGeneration",
}


def register() -> None:
    """Put m3gen's classes in the place of vLLM's MiniMax-M3; they are imported when a model needs them.

    Nothing happens unless `M3GEN_VLLM` is 1. `UserError` when it is anything but 0 or 1, and under a version of
    vLLM that this integration does not know.
    """
    switch = os.environ.get(SWITCH, "0")
    if switch not in ("0", "1"):
        raise UserError(f"{SWITCH}={switch!r}: expected 1 to switch m3gen on in vLLM, or 0")
    if switch == "0":
        return
    import vllm

    versions.check(vllm.__version__)
    from vllm import ModelRegistry

    for architecture, model in MODELS.items():
        ModelRegistry.register_model(architecture, model)
