"""The patches of the test stand, each beside the reason why a CPU needs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import stand_ops
import torch

_FOR_GOOD = ExitStack()


def _torchvision_ops() -> None:
    """PyPI's torchvision is built for CUDA: its compiled operators are missing, and their meta kernels fail."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    globals()["_library"] = library  # operators live as long as their library


class _NoDriver:
    """Never asked to launch: everything runs in Triton's interpreter."""

    @staticmethod
    def is_active() -> bool:
        return False


class _CpuBackend:
    compiler = None
    driver = _NoDriver


def _triton_backend() -> None:
    """vLLM's CPU build turns Triton off unless Triton has a backend called cpu."""
    from triton.backends import backends

    import m3gen.interpreter

    m3gen.interpreter.install()  # the stock interpreter fails on vLLM's own kernels
    _FOR_GOOD.enter_context(m3gen.interpreter.overflow_unchecked())  # the gate checks; here it is half the time
    backends.setdefault("cpu", _CpuBackend)


def _custom_ops(module: Any) -> None:
    """The fused norm, RoPE and insert is compiled for CUDA alone."""
    module.fused_minimax_m3_qknorm_rope_kv_insert = stand_ops.norm_rope_insert


def _model(module: Any) -> None:
    """RMSNorm calls FlashInfer."""
    module.MiniMAXGemmaRMSNorm.forward = stand_ops.rms_norm


def _indexer(module: Any) -> None:
    """Prefill in the interpreter takes minutes a prompt; decode is what m3gen replaces."""
    module.minimax_m3_index_score = stand_ops.index_score
    module.minimax_m3_index_topk = stand_ops.index_topk
    module.minimax_m3_index_decode = stand_ops.index_decode


def _sparse_attention(module: Any) -> None:
    module.minimax_m3_sparse_attn = stand_ops.sparse_attention
    module.minimax_m3_sparse_attn_decode = stand_ops.sparse_attention_decode


BEFORE: dict[str, Callable[[], None]] = {
    "torchvision": _torchvision_ops,
    "vllm.triton_utils.importing": _triton_backend,
}
AFTER: dict[str, Callable[[ModuleType], None]] = {
    "vllm._custom_ops": _custom_ops,
    "vllm.models.minimax_m3.nvidia.model": _model,
    "vllm.models.minimax_m3.common.indexer": _indexer,
    "vllm.models.minimax_m3.common.sparse_attention": _sparse_attention,
}
