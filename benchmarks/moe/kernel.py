"""vLLM's fused-MoE kernel, cut out of the wheel's file, and the launch that specialises it as its wrapper does."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from m3gen.codegen.launch import Launch, Pointer
from m3gen.codegen.source import KernelSource

from .campaign import Campaign
from .config import NUM_STAGES, WAVES_PER_EU, MoeConfig
from .tables import FOLDER, HOW, NotVllm

_KERNEL = "fused_moe_kernel"
_NEEDS = ("write_zeros_to_output", _KERNEL)

# One layer for all: sizes are run-time arguments, and every public model's are multiples of 16.
_TOKENS, _TOPK, _EXPERTS, _HIDDEN, _COLUMNS = 64, 2, 8, 4096, 7168


@cache
def source(wheel: Path) -> KernelSource:
    """The kernel and the function it calls as a module of their own, without vLLM. `NotVllm` when absent."""
    path = wheel / FOLDER / "fused_moe.py"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise NotVllm(f"{wheel} is not vLLM: no {FOLDER}/fused_moe.py. To fetch it: {HOW}") from None
    found = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name in _NEEDS}
    if missing := [name for name in _NEEDS if name not in found]:
        raise NotVllm(f"{path} has no {missing[0]}: expected the file of {HOW}")
    lines = text.splitlines()
    parts = ["import triton", "import triton.language as tl"]
    for name in _NEEDS:
        function = found[name]
        first = min(decorator.lineno for decorator in function.decorator_list)
        parts.append("\n".join(lines[first - 1 : function.end_lineno]))
    return KernelSource(op="fused_moe", entry=_KERNEL, text="\n\n\n".join(parts) + "\n", templates={})


def launch(campaign: Campaign, config: MoeConfig) -> Launch:
    """The first GEMM of a layer as `invoke_fused_moe_triton_kernel` launches it: contiguous tensors, no bias,
    per-tensor scales for fp8."""
    import triton.language as tl

    fp8 = campaign.element_bytes == 1
    rows = _TOKENS * _TOPK + _EXPERTS * (config.block_m - 1)
    scale = Pointer("fp32", 256, 4 * _EXPERTS) if fp8 else None
    indices = Pointer("i32", 256, 4 * rows)
    arguments: dict[str, Any] = {
        "a_ptr": Pointer(campaign.dtype, 256, _TOKENS * _HIDDEN * campaign.element_bytes),
        "b_ptr": Pointer(campaign.dtype, 256, _EXPERTS * _COLUMNS * _HIDDEN * campaign.element_bytes),
        "c_ptr": Pointer("bf16", 256, _TOKENS * _TOPK * _COLUMNS * 2),
        "b_bias_ptr": None,
        "a_scale_ptr": scale,
        "b_scale_ptr": scale,
        "topk_weights_ptr": Pointer("fp32", 256, 4 * _TOKENS * _TOPK),
        "sorted_token_ids_ptr": indices,
        "expert_ids_ptr": indices,
        "num_tokens_post_padded_ptr": Pointer("i32", 256, 4),
        "N": _COLUMNS,
        "K": _HIDDEN,
        "EM": -(-rows // 16) * 16,
        "num_valid_tokens": _TOKENS * _TOPK,
        **dict.fromkeys(("stride_am", "stride_bn"), _HIDDEN),
        **dict.fromkeys(("stride_ak", "stride_bk", "stride_cn"), 1),
        "stride_be": _COLUMNS * _HIDDEN,
        "stride_cm": _COLUMNS,
        **dict.fromkeys(("stride_asm", "stride_ask", "stride_bse", "stride_bsk", "stride_bsn"), 0),
        **dict.fromkeys(("stride_bbe", "stride_bbn", "group_n", "group_k"), 0),
        "naive_block_assignment": False,
        "BLOCK_SIZE_M": config.block_m,
        "BLOCK_SIZE_N": config.block_n,
        "BLOCK_SIZE_K": config.block_k,
        "GROUP_SIZE_M": 1,
        "SPLIT_K": 1,
        "MUL_ROUTED_WEIGHT": False,
        "top_k": _TOPK,
        "compute_type": tl.bfloat16,
        "use_fp8_w8a8": fp8,
        **dict.fromkeys(("use_int8_w8a8", "use_int8_w8a16", "per_channel_quant", "HAS_BIAS", "SWAP_AB"), False),
        "USE_TD": False,
    }
    options: dict[str, int] = {
        "num_warps": config.num_warps,
        "num_stages": NUM_STAGES,
        "waves_per_eu": WAVES_PER_EU,
    }
    if not fp8:
        options |= {"matrix_instr_nonkdim": config.nonkdim, "kpack": config.kpack}
    return Launch(_KERNEL, tuple(arguments.items()), tuple(options.items()), (1, 1, 1))
