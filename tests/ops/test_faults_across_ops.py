"""Faults that show only where one op's output is another's input, and faults that any launcher may have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.ops import Cache, decode_inputs
from m3gen.spec import MINIMAX_M3, Problem
from m3gen.targets import Device, default_device
from tests import problems
from tests.ops import cache_problems, decode
from tests.ops.test_index_topk_faults import inputs as topk_inputs
from tests.ops.test_index_topk_faults import selected, table

TOKENS = 7


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_insert_writes_at_unit_scale_what_the_attention_reads_at_another(arch: str) -> None:
    """What `qk_norm_rope_insert` stores under k_scale 0.5, `sparse_decode` reads under 0.5: attention over the
    unquantised K and V, within the rounding of fp8; under a reader's scale of 1 it would be far off."""
    exact, scale = inserted(arch, "none"), torch.tensor([0.5])
    stored = inserted(arch, "scalar", k_scale=scale, v_scale=scale)
    problem = exact["problem"]
    wanted = decode_inputs.reference(problem, exact["arguments"])
    scaled = {"k_scale": scale, "v_scale": scale}
    found = attended(stored["problem"], stored["arguments"] | scaled)
    assert decode.error(found, wanted) < 0.1
    ones = {"k_scale": torch.ones(1), "v_scale": torch.ones(1)}
    assert decode.error(attended(stored["problem"], stored["arguments"] | ones), wanted) > 0.3


def test_a_copied_page_is_attended_to_without_its_scales() -> None:
    """https://github.com/ROCm/ATOM/pull/1368, https://github.com/vllm-project/vllm/issues/50882: blocks a -> b, then
    decode through b. With a scale per token and head, made by the insert."""
    generator = torch.Generator().manual_seed(0)
    planes = {f"{side}_scale": torch.rand((1, 3 * 128), generator=generator) + 9.0 for side in "kv"}
    stored = inserted("gfx942", "per_token_head", **planes)
    before = attended(stored["problem"], stored["arguments"] | planes)
    pairs = torch.tensor([[1, 2]])
    of, device = cache_problems.problem("kv_copy", scale="per_token_head")
    caches = {name: stored["arguments"][name] for name in ("k_cache", "v_cache")}
    cache_problems.launch(of, device, {**caches, **planes, "pairs": pairs})
    moved = stored["arguments"] | {"block_table": torch.tensor([[2]], dtype=torch.int32)} | planes
    for cache in caches.values():
        cache[1].view(torch.uint8).fill_(0)
    assert torch.equal(attended(stored["problem"], moved), before)


def inserted(arch: str, scale: str, **scales: Any) -> dict[str, Any]:
    """Arguments of `sparse_decode` for the last of `TOKENS` tokens that the insert put into page 1, and its problem.

    Rows are the same whatever the cache: those of the unscaled problem.
    """
    of, device = cache_problems.problem("qk_norm_rope_insert", arch)
    given = dict(cache_problems.case(of, device, f"peers {TOKENS} tokens").arguments)
    of, device = cache_problems.problem("qk_norm_rope_insert", arch, scale=scale)
    k_cache, v_cache = cache_problems.caches(of, 3)
    given |= {"k_cache": k_cache, "v_cache": v_cache, "slot_mapping": torch.arange(TOKENS) + 128, **scales}
    cache_problems.launch(of, device, given)
    problem, _ = problems.sparse_decode(arch, kv_dtype=of.kv_dtype, kv_scale=scale, rows=1)
    ids = torch.full((1, 1, problem.topk), -1, dtype=torch.int32)
    ids[..., 0] = 0
    q = given["q_out"][-1:].clone()
    arguments = {
        "q": q,
        "k_cache": k_cache,
        "v_cache": v_cache,
        "topk_ids": ids,
        "block_table": torch.tensor([[1]], dtype=torch.int32),
        "seq_lens": torch.tensor([TOKENS], dtype=torch.int32),
        "out": torch.empty_like(q),
        "softmax_scale": problem.head_dim**-0.5,
        "query_len": 1,
    }
    return {"problem": problem, "arguments": arguments}


def attended(problem: Problem, arguments: dict[str, Any]) -> torch.Tensor:
    return decode.run(problem, decode.config(tile_n=64), arguments)


def test_query_rows_of_a_request_share_one_page_table_row() -> None:
    """https://github.com/vllm-project/vllm/issues/52860: query length 8, one head: a table and a length each."""
    arguments = topk_inputs(torch.randn((1, 16, 16), generator=torch.Generator().manual_seed(0)), [260, 5])
    arguments |= table(2, 16, 16)
    selected(arguments)
    assert arguments["context_lens"][0].tolist() == [
        253,
        254,
        255,
        256,
        257,
        258,
        259,
        260,
        0,
        0,
        0,
        1,
        2,
        3,
        4,
        5,
    ]
    used = (arguments["page_table"][0] != 0).any(1).tolist()
    assert used == [True] * 8 + [False] * 3 + [True] * 5
    assert [int((row != 0).sum()) for row in arguments["page_table"][0, :8]] == [16] * 4 + [24] * 4


class NothingButViews(TorchDispatchMode):
    """Refuses whatever a captured launch may not do: allocate, compute, or bring a value to the host."""

    VIEWS = ("aten.view", "aten.detach", "aten.as_strided", "aten.slice", "aten.select", "aten.alias")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not str(func).startswith(self.VIEWS):
            raise AssertionError(f"the launcher calls {func}")
        return func(*args, **(kwargs or {}))


def every_problem() -> list[tuple[Problem, Device]]:
    """Every op on every cache that it has a variant for, on one architecture of each vendor."""
    found = []
    for arch in ("gfx942", "sm_90"):
        device = default_device(arch)
        fp8 = device.architecture.fp8
        for cache in (Cache("bf16"), Cache(fp8, "scalar"), Cache(fp8, "per_token_head")):
            for name in ops.names():
                for query_len in (1, 4):
                    problem = ops.get(name).problem(device, MINIMAX_M3.shard(4), cache, query_len)
                    if problem is not None and (problem, device) not in found:
                        found.append((problem, device))
    return found


@pytest.mark.parametrize("name", ops.names())
def test_a_launcher_allocates_or_waits_for_the_device(name: str) -> None:
    """https://github.com/ROCm/ATOM/pull/1480: `.item()` and shapes of data break a capture, allocations move."""
    tried = 0
    for problem, device in every_problem():
        if problem.op != name:
            continue
        op = ops.get(name)
        for config in (op.default(problem, device), op.space(problem, device).config(0)):
            source, arguments = render(op, problem, config), op.example(problem, config)
            with NothingButViews():
                assert trace(source, arguments)
            tried += 1
    assert tried >= 4


def test_the_guard_sees_what_a_capture_would_not_survive() -> None:
    """The test above can fail."""
    with NothingButViews():
        for forbidden in (torch.empty, torch.zeros):
            with pytest.raises(AssertionError, match="the launcher calls aten"):
                forbidden(3)
    one = torch.ones(1)
    with NothingButViews(), pytest.raises(AssertionError, match="_local_scalar_dense"):
        one.item()


@pytest.mark.parametrize(
    "name", ["qk_norm_rope_insert", "kv_insert", "kv_gather", "kv_copy", "kv_convert", "kv_zero"]
)
@pytest.mark.parametrize("page", [16, 64])
def test_a_cache_op_serves_another_page_size_wrongly(name: str, page: int) -> None:
    """https://github.com/sgl-project/sglang-jax/issues/1376."""
    problem, device = cache_problems.problem(name)
    config = cache_problems.config(problem, device)
    arguments = ops.get(name).example(problem, config)
    cut = {
        key: t[:, :, :page]
        for key, t in arguments.items()
        if key in ("k_cache", "v_cache", "source_k", "source_v")
    }
    with pytest.raises(ValueError, match=rf"has shape \[\d+, 1, {page}, 128\], expected \[\w+, 1, 128, 128\]"):
        trace(render(ops.get(name), problem, config), arguments | cut)


@pytest.mark.parametrize("arch", problems.ARCHS)
@pytest.mark.parametrize("name", ["sparse_decode", "dense_decode", "index_score"])
def test_every_schedule_has_two_stages_or_more(name: str, arch: str) -> None:
    """https://github.com/ROCm/aiter/pull/5483: two stages fit, and are two to four times slower than one. One stage
    stays in the space of every problem, and no config is refused for its memory that has one stage of 64 tokens."""
    for fp8 in (False, True):
        cache = Cache(default_device(arch).architecture.fp8, "scalar") if fp8 else Cache("bf16")
        device = default_device(arch)
        problem = ops.get(name).problem(device, MINIMAX_M3.shard(4), cache, 1)
        assert problem is not None
        space = ops.get(name).space(problem, device)
        defaults = {parameter.name: parameter.default for parameter in space.parameters}
        values = {**defaults, **ops.get(name).default(problem, device), "num_stages": 1, "tile_n": 64}
        config = space.canonical(values)
        assert "shared_bytes" not in [violation.code for violation in space.violations(config)]
