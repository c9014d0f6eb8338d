"""What the runtime asks for is what the ops are tuned as."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from m3gen import ops
from m3gen.ops.base import Cache
from m3gen.runtime import Limits, Settings
from m3gen.runtime.problems import ops_of, problem
from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3
from m3gen.targets import default_device

DTYPES = {"bf16": torch.bfloat16, "e4m3fn": torch.uint8, "e4m3fnuz": torch.uint8}


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
@pytest.mark.parametrize("tensor_parallel", [1, 4, 8])
@pytest.mark.parametrize("query_len", [1, 4])
@pytest.mark.parametrize("fp8", [False, True])
def test_problems_of_the_runtime_are_those_that_are_tuned(
    arch: str, tensor_parallel: int, query_len: int, fp8: bool
) -> None:
    device = default_device(arch)
    name, scale = (device.architecture.fp8, "scalar") if fp8 else ("bf16", "none")
    asked = Settings(
        arch=arch,
        tensor_parallel=tensor_parallel,
        limits=Limits(max_requests=4, query_lens=(query_len,), max_model_len=8192),
        kv_dtype=DTYPES[name],
        kv_scale=scale,
        index_dtype=DTYPES[name],
    )
    shard = MINIMAX_M3.shard(tensor_parallel)
    for op in (*ops_of(asked), "kv_insert"):
        cache = Cache(name) if op == "index_select" else Cache(name, scale)
        tuned = ops.get(op).problem(device, shard, cache, query_len)
        assert tuned is not None
        found = problem(op, asked, query_len)
        assert ops.get(op).canonical(found) == ops.get(op).canonical(replace(tuned, context=found.context)), op
        assert found.context in (8192, CONTEXT_BUCKETS[0])
