"""vLLM's MiniMax-M3, of the platform that is here, with m3gen's model-runner state."""

from __future__ import annotations

from typing import Any

from vllm.config import VllmConfig
from vllm.models.minimax_m3 import MiniMaxM3SparseForCausalLM, MiniMaxM3SparseForConditionalGeneration

from m3gen.errors import UserError
from m3gen.integrations.vllm.options import Options


class _WithState:
    """Before vLLM's class in the order of resolution."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        options = Options.of(vllm_config.additional_config)
        if options.enabled and not vllm_config.use_v2_model_runner:
            raise UserError(
                "m3gen is on and vLLM would use Model Runner V1, which has no model-runner state: "
                "set VLLM_USE_V2_MODEL_RUNNER=1, or unset M3GEN_VLLM"
            )
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        self.m3gen_enabled = options.enabled

    def get_model_state_cls(self) -> type[Any]:
        """What the model runner holds: m3gen's state, or vLLM's own where an engine switched m3gen off."""
        if self.m3gen_enabled:
            from m3gen.integrations.vllm.state import M3genModelState

            return M3genModelState
        if (stock := getattr(super(), "get_model_state_cls", None)) is not None:
            return stock()  # type: ignore[no-any-return]
        from vllm.v1.worker.gpu.model_states.default import DefaultModelState

        return DefaultModelState  # type: ignore[no-any-return]


class M3genForCausalLM(_WithState, MiniMaxM3SparseForCausalLM):  # type: ignore[misc]
    """Text."""


class M3genForConditionalGeneration(_WithState, MiniMaxM3SparseForConditionalGeneration):  # type: ignore[misc]
    """Text and images; the text model inside is looked up by name and is the one above."""
