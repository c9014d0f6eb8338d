"""Our decode attentions against the MiniMax-M3 of transformers: a tiny random model, every layer's last rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from m3gen.ops import decode_inputs
from m3gen.spec import Problem
from tests.ops import decode

pytest.importorskip("transformers", reason="transformers is not installed")
model_files = pytest.importorskip(
    "transformers.models.minimax_m3_vl.modeling_minimax_m3_vl", reason="this transformers has no MiniMax-M3"
)

KV_HEADS, GROUP, HEAD_DIM, PAGE, TOPK = 2, 2, 16, 16, 3
LAYERS = ("full_attention", "full_attention", "minimax_m3_sparse", "minimax_m3_sparse")


@dataclass(frozen=True)
class Call:
    """One layer's attention: q [B, q_heads, S, D], k and v [B, kv_heads, S, D], out [B, S, q_heads, D]; blocks
    [B, kv_heads, S, topk] or None."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    blocks: torch.Tensor | None
    out: torch.Tensor


def record(length: int, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """A forward pass over two random sequences; what each layer's attention got and gave."""
    from transformers import MiniMaxM3VLTextConfig

    config = MiniMaxM3VLTextConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=16,
        dense_intermediate_size=16,
        shared_intermediate_size=16,
        num_hidden_layers=len(LAYERS),
        num_attention_heads=KV_HEADS * GROUP,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=512,
        num_local_experts=4,
        num_experts_per_tok=2,
        rope_parameters={"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.5},
        layer_types=list(LAYERS),
        mlp_layer_types=["dense"] * 2 + ["sparse"] * 2,
        index_n_heads=KV_HEADS,
        index_head_dim=HEAD_DIM,
        index_block_size=PAGE,
        index_topk_blocks=TOPK,
        attn_implementation="sdpa",
    )
    calls: list[Call] = []
    functions = model_files.ALL_ATTENTION_FUNCTIONS
    stock = functions["sdpa"]

    def recorded(module: Any, q: Any, k: Any, v: Any, mask: Any, **arguments: Any) -> Any:
        result = stock(module, q, k, v, mask, **arguments)
        calls.append(Call(q, k, v, arguments.get("block_indices"), result[0]))
        return result

    monkeypatch.setitem(functions, "sdpa", recorded)
    torch.manual_seed(0)
    with torch.no_grad():
        model_files.MiniMaxM3VLTextModel(config).eval()(torch.randint(0, 64, (2, length)), use_cache=False)
    return calls


def paged(call: Call, query_len: int) -> tuple[Problem, dict[str, Any]]:
    """The last `query_len` rows of both sequences as a decode batch; pages shuffled, NaN past the end."""
    sparse = call.blocks is not None
    problem = decode.tiny(
        "sparse_decode" if sparse else "dense_decode",
        query_len=query_len,
        kv_heads=KV_HEADS,
        group_size=GROUP,
        topk=TOPK,
    )
    requests, _, length, _ = call.k.shape
    blocks = -(-length // PAGE)
    table = torch.randperm(requests * blocks, dtype=torch.int32).reshape(requests, blocks)
    caches = {}
    for side, data in (("k", call.k), ("v", call.v)):
        whole = torch.full((requests, KV_HEADS, blocks * PAGE, HEAD_DIM), float("nan"))
        whole[:, :, :length] = data
        cache = torch.empty((requests * blocks, KV_HEADS, PAGE, HEAD_DIM))
        cache[table.flatten().long()] = (
            whole.unflatten(2, (blocks, PAGE)).transpose(1, 2).flatten(0, 1)
        )  # [request * block, head, token, element]
        caches[f"{side}_cache"] = cache
    q = call.q[:, :, -query_len:].transpose(1, 2).flatten(0, 1).contiguous()
    arguments: dict[str, Any] = {
        "q": q,
        **caches,
        "block_table": table,
        "seq_lens": torch.full((requests,), length, dtype=torch.int32),
        "out": torch.empty_like(q),
        "softmax_scale": HEAD_DIM**-0.5,
        "query_len": query_len,
    }
    if sparse:
        lists = call.blocks[:, :, -query_len:].permute(1, 0, 2, 3).flatten(1, 2).int()
        room = torch.full((*lists.shape[:-1], TOPK - lists.shape[-1]), -1, dtype=torch.int32)
        arguments["topk_ids"] = torch.cat([lists, room], dim=-1)
    return problem, arguments


@pytest.mark.parametrize("length", [PAGE, 2 * PAGE + 1, 6 * PAGE + 7])
@pytest.mark.parametrize("query_len", [1, 3])
def test_every_layers_attention_is_ours(length: int, query_len: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record(length, monkeypatch)
    assert [call.blocks is not None for call in calls] == [kind != "full_attention" for kind in LAYERS]
    for call in calls:
        problem, arguments = paged(call, query_len)
        theirs = call.out[:, -query_len:].flatten(0, 1)
        ours = decode_inputs.reference(problem, arguments)
        assert decode.error(theirs, ours) < 1e-5
        if length > TOPK * PAGE and call.blocks is not None:  # the selection matters
            everything = {name: value for name, value in arguments.items() if name != "topk_ids"}
            assert decode.error(theirs, decode_inputs.reference(problem, everything)) > 1e-2
        decode.check(problem, decode.config(), arguments, bound=1e-5)
