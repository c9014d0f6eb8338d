"""Faults of the field's decode attentions, one test each, with the right answer from the float64 reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render, trace
from m3gen.compiler.compile import prepare
from m3gen.spec import dtype
from m3gen.targets import architecture
from tests import problems
from tests.ops import decode

PAGE = decode.PAGE
NAN = float("nan")

both = pytest.mark.parametrize("op", ["dense_decode", "sparse_decode"])
merges = pytest.mark.parametrize("merge", ["kernel", "last"])


def example(op: str, **fields: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Problem, source of the default config, and meta arguments of an op on MiniMax-M3's shapes."""
    problem, device = problems.decode(op, **fields)
    config = ops.get(op).default(problem, device)
    source = render(ops.get(op), problem, config)
    return problem, source, ops.get(op).example(problem, config)


@both
@merges
def test_rows_of_padding_come_out_nan_from_the_merge(op: str, merge: str) -> None:
    """vllm#49054."""
    problem = decode.tiny(op, query_len=3)
    chosen = decode.config(splits=2, merge=merge)
    arguments = decode.inputs(problem, chosen, [0, 1, PAGE + 2])
    out = decode.check(problem, chosen, arguments)
    assert [bool(row.any()) for row in out] == [False, False, False, False, False, True, True, True, True]
    assert (arguments["partial_lse"][:, :5] == -torch.inf).all()


@pytest.mark.parametrize("masked", [True, False])
def test_a_sentinel_indexes_the_table_before_its_row(masked: bool) -> None:
    """vllm PR 54597: the entry before the row is a page that does not exist."""
    problem, chosen = decode.tiny("sparse_decode"), decode.config(masked_loads=masked)
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 1])
    table = torch.full((1, 8), 2**30, dtype=torch.int32)
    table[:, 4:7] = arguments["block_table"]
    arguments["block_table"] = table[:, 4:7]
    arguments["topk_ids"][:] = torch.tensor([0, -1, 1, -1], dtype=torch.int32)
    decode.check(problem, chosen, arguments)


@both
@pytest.mark.parametrize("arch", problems.ARCHS)
def test_bytes_of_one_fp8_dialect_are_read_as_the_other(op: str, arch: str) -> None:
    """vllm#45562: on gfx942 half of the value, and a silent drop of accuracy."""
    _, source, arguments = example(op, arch=arch, fp8=True)
    wrong = {"gfx942": torch.float8_e4m3fn}.get(arch, torch.float8_e4m3fnuz)
    for name in ("k_cache", "v_cache"):
        with pytest.raises(ValueError, match=f"{name} is {wrong}, expected torch.float8_e4m3fn"):
            trace(source, {**arguments, name: arguments[name].view(wrong)})


@both
@pytest.mark.parametrize("dialect", ["e4m3fn", "e4m3fnuz"])
def test_the_largest_value_of_a_dialect_is_a_literal_of_another(op: str, dialect: str) -> None:
    """ATOM PR 2205: 240 for 448. With every V at the largest value the output is that, times the scale."""
    problem = decode.tiny(op, kv_dtype=dialect, kv_scale="scalar")
    chosen = decode.config()
    arguments = decode.inputs(problem, chosen, [PAGE + 3])
    arguments["v_cache"].fill_(dtype(dialect).max)
    out = decode.run(problem, chosen, arguments)
    assert torch.allclose(out, torch.full_like(out, dtype(dialect).max * 0.25))


@both
@pytest.mark.parametrize("pack", [1, 2, 4])
def test_requests_of_padding_among_several_query_rows_change_the_others(op: str, pack: int) -> None:
    """vllm PR 47984: 4 requests of 4 rows padded to 8, their table rows zero."""
    problem, chosen = decode.tiny(op, query_len=4, group_size=2), decode.config(rows_packed=pack)
    arguments = decode.inputs(problem, chosen, [3, PAGE, PAGE + 1, 2 * PAGE + 2, 0, 0, 0, 0])
    arguments["block_table"][4:] = 0
    padded = decode.check(problem, chosen, arguments)
    per_row = {name: arguments[name][:16] for name in ("q", "out")}
    per_request = {name: arguments[name][:4] for name in ("block_table", "seq_lens")}
    alone = {**arguments, **per_row, **per_request}
    if op == "sparse_decode":
        alone["topk_ids"] = arguments["topk_ids"][:, :16]
    assert torch.equal(decode.run(problem, chosen, alone), padded[:16])
    assert not padded[16:].any()


@both
@merges
def test_a_split_that_early_rows_do_not_see_weighs_in(op: str, merge: str) -> None:
    """aiter#4711: 8 rows of one request, of which only the last 4 see the last tile: 0 * NaN."""
    problem = decode.tiny(op, query_len=8, group_size=8)
    chosen = decode.config(rows_packed=8, splits=2 if op == "sparse_decode" else 4, merge=merge)
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 4])
    if op == "sparse_decode":
        arguments["topk_ids"][:] = torch.tensor([0, 1, 2, -1], dtype=torch.int32)
    decode.check(problem, chosen, arguments)
    last = arguments["partial_lse"][-1 if op == "sparse_decode" else 2]
    assert (last[:4] == -torch.inf).all()
    assert last[4:].isfinite().all()


@both
def test_a_length_of_zero_less_one_is_four_billion(op: str) -> None:
    """flashinfer#5015, vllm#51538: the kernel never ends."""
    problem, chosen = decode.tiny(op), decode.config()
    out = decode.check(problem, chosen, decode.inputs(problem, chosen, [PAGE, 0, 1], hostile=True))
    assert not out[1].any()


@both
@merges
def test_tokens_of_padding_are_counted_as_requests(op: str, merge: str) -> None:
    """TensorRT-LLM PR 18034: 5 rows padded to 8. The counters of the merge are zero for the next step."""
    problem, chosen = decode.tiny(op), decode.config(splits=2, merge=merge)
    arguments = decode.inputs(problem, chosen, [5, PAGE, 1, 2 * PAGE, 7, 0, 0, 0])
    first = decode.check(problem, chosen, arguments)
    if merge == "last":
        assert not arguments["arrivals"].any()
    assert torch.equal(decode.run(problem, chosen, arguments), first)


@both
@pytest.mark.parametrize("far", ["page", "head"])
def test_an_offset_past_two_gi_elements_wraps(op: str, far: str) -> None:
    """vllm#47671: page * stride in 32 bits; and head * stride, where heads are the outermost dimension."""
    problem, chosen = decode.tiny(op, kv_heads=3, group_size=2), decode.config()
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 1])
    pages = arguments["k_cache"].shape[0]
    page, head = PAGE * decode.HEAD_DIM, pages * PAGE * decode.HEAD_DIM
    strides = ((1 << 31) // (pages - 1) + page, page) if far == "page" else (page, (1 << 30) + head)
    room = sum((n - 1) * stride for n, stride in zip((pages, 3), strides, strict=True)) + page
    for name in ("k_cache", "v_cache"):
        near = arguments[name]
        # Memory that is never touched is never committed.
        wide = torch.empty(room).as_strided(near.shape, (*strides, decode.HEAD_DIM, 1))
        arguments[name] = wide.copy_(near)
    decode.check(problem, chosen, arguments)


@both
@pytest.mark.parametrize("arch", problems.ARCHS)
def test_tiles_that_exceed_shared_memory_reach_the_gpu(op: str, arch: str) -> None:
    """aiter PR 3257: 98304 bytes of LDS on gfx942. Refused before anything is compiled."""
    problem, device = problems.decode(op, arch, q_dtype="fp32", kv_dtype="fp32")
    space = ops.get(op).space(problem, device)
    stages = max(next(p.values for p in space.parameters if p.name == "num_stages"))
    config = space.canonical({**ops.get(op).default(problem, device), "tile_n": 128, "num_stages": stages})
    needed = 128 * 128 * 4 * 2 * (stages - 1)
    refused = "shared_bytes" in [violation.code for violation in space.violations(config)]
    assert refused == (needed > device.architecture.shared_bytes_per_workgroup)
    assert refused or arch == "gfx950"


@both
@pytest.mark.parametrize("group_size", [24, 16, 8, 6, 4, 3, 1])
def test_a_group_that_is_no_power_of_two_loses_its_tail_heads(op: str, group_size: int) -> None:
    """vllm PR 40792, pytorch#151359."""
    problem = decode.tiny(op, group_size=group_size, kv_heads=2, query_len=3)
    chosen = decode.config(rows_packed=3)
    decode.check(problem, chosen, decode.inputs(problem, chosen, [PAGE + 2, 1]))


@both
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_kernels_are_compiled_while_serving(op: str, fp8: bool, arch: str) -> None:
    """vllm PR 45631: integers specialise on 1 and on multiples of 16, pointers on their alignment. One kernel
    serves every batch, context and place in a larger buffer."""
    problem, source, arguments = example(op, arch=arch, fp8=fp8, rows=32)
    module = load_module(source)
    keys: dict[str, set[str]] = {}
    for rows in (1, 3, 16, 17):
        for start in (0, 1):  # a batch that begins at an odd request
            for blocks in (1, 16, 37):
                table = torch.empty((32, blocks + start), dtype=torch.int32, device="meta")
                batch = {
                    **arguments,
                    **{name: arguments[name][start : start + rows] for name in ("q", "out", "seq_lens")},
                    "block_table": table[start : start + rows, start:],
                }
                if op == "sparse_decode":
                    lists = torch.empty((problem.kv_heads, 32, problem.topk), dtype=torch.int32, device="meta")
                    batch["topk_ids"] = lists[:, start : start + rows]
                if fp8:  # one entry of a vector that holds the scales of all layers
                    scales = torch.empty(8, dtype=torch.float32, device="meta")
                    batch |= {"k_scale": scales[start : start + 1], "v_scale": scales[start + 2 : start + 3]}
                for launch in trace(source, batch):
                    key = prepare(module, launch, architecture(arch)).key
                    keys.setdefault(launch.kernel, set()).add(key)
    assert {name: len(found) for name, found in keys.items()} == {f"{op}_attend": 1, "merge_splits": 1}


@both
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("heads_in", ["m", "n"])
def test_what_lies_past_the_end_in_the_last_page_drifts_into_the_output(
    op: str, masked: bool, heads_in: str
) -> None:
    """vllm-ascend#13391: NaN there; and past the last column of the table stands a page that does not exist."""
    problem = decode.tiny(op)
    chosen = decode.config(masked_loads=masked, heads_in=heads_in, splits=2)  # of 3 tiles
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 3], padded_rows=False)
    table = torch.full((1, 8), 2**30, dtype=torch.int32)
    table[:, :3] = arguments["block_table"]
    arguments["block_table"] = table[:, :3]
    last = int(table[0, 2])
    assert all(arguments[f"{side}_cache"][last, :, 3:].isnan().all() for side in "kv")
    decode.check(problem, chosen, arguments)


@both
@pytest.mark.parametrize("page", [16, 64, 256])
def test_another_page_size_is_served_wrongly(op: str, page: int) -> None:
    """sglang-jax#1376."""
    _, source, arguments = example(op)
    cache = torch.empty((64, 1, page, 256), dtype=torch.bfloat16, device="meta")
    with pytest.raises(
        ValueError, match=rf"k_cache has shape \[64, 1, {page}, 128\], expected \[64, 1, 128, 128\]"
    ):
        trace(source, {**arguments, "k_cache": cache[..., :128], "v_cache": cache[..., 128:]})


@both
@pytest.mark.parametrize("query_len", [1, 4])
def test_a_launch_waits_for_the_device(op: str, query_len: int) -> None:
    """ATOM PR 1480: meta tensors hold no data, so whatever reads some raises; under capture it would too."""
    for identifier in range(3):
        problem, device = problems.decode(op, fp8=True, query_len=query_len, rows=4)
        space = ops.get(op).space(problem, device)
        config = space.config(identifier * (len(space) // 3))
        source = render(ops.get(op), problem, config)
        assert trace(source, ops.get(op).example(problem, config))


@both
@pytest.mark.parametrize("masked", [True, False])
def test_a_negative_page_is_loaded(op: str, masked: bool) -> None:
    """vllm PR 50032: -1 in the page table, past the end and within."""
    problem, chosen = decode.tiny(op), decode.config(masked_loads=masked)
    arguments = decode.inputs(problem, chosen, [PAGE, 3 * PAGE + 1, 0], hostile=True)
    assert (arguments["block_table"] == -1).sum() == 3 + 1 + 4
    decode.check(problem, chosen, arguments)


def test_blocks_after_a_hole_in_the_list_are_lost() -> None:
    """Ids [0, -1, -1, 2]: the entries past the hole count, and so does the order."""
    problem, chosen = decode.tiny("sparse_decode"), decode.config(splits=2)
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 12])
    arguments["topk_ids"][:] = torch.tensor([0, -1, -1, 2], dtype=torch.int32)
    holes = decode.check(problem, chosen, arguments)
    arguments["topk_ids"][:] = torch.tensor([0, 2, -1, -1], dtype=torch.int32)
    assert torch.allclose(decode.run(problem, chosen, arguments), holes, atol=1e-6)


def test_unordered_ids_mask_the_wrong_block() -> None:
    """sglang#30971: the partial last block stands first in the list."""
    problem, chosen = decode.tiny("sparse_decode"), decode.config()
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 12])
    arguments["topk_ids"][:] = torch.tensor([2, 0, 1, -1], dtype=torch.int32)
    decode.check(problem, chosen, arguments)


@pytest.mark.parametrize("pack", [1, 2])
def test_an_id_that_stands_twice_changes_other_rows(pack: int) -> None:
    """Outside the contract: the row itself is attention with that block weighing once or twice."""
    problem, chosen = decode.tiny("sparse_decode", query_len=2), decode.config(rows_packed=pack)
    arguments = decode.inputs(problem, chosen, [3 * PAGE, 2 * PAGE])
    arguments["topk_ids"][:] = torch.tensor([1, 0, -1, -1], dtype=torch.int32)
    before, once = decode.run(problem, chosen, arguments), decode.expected(problem, arguments)
    arguments["topk_ids"][:, 1] = torch.tensor([1, 0, 1, -1], dtype=torch.int32)
    after, twice = decode.run(problem, chosen, arguments), decode.expected(problem, arguments)
    assert torch.equal(after[[0, 2, 3]], before[[0, 2, 3]])
    assert min(decode.error(after[1], once[1]), decode.error(after[1], twice[1])) <= 2e-6


@both
@pytest.mark.parametrize("dialect", ["e4m3fn", "e4m3fnuz"])
def test_what_was_written_with_a_scale_is_read_without(op: str, dialect: str) -> None:
    """Stored x / scale, read with that scale: attention over x within the rounding of fp8."""
    problem = decode.tiny(op, kv_dtype=dialect, kv_scale="scalar")
    chosen = decode.config()
    arguments = decode.inputs(problem, chosen, [2 * PAGE + 5])
    exact = {**arguments}
    for side, scale in (("k", 0.5), ("v", 0.25)):
        shape = arguments[f"{side}_cache"].shape
        exact[f"{side}_cache"] = torch.randn(shape, generator=torch.Generator().manual_seed(len(side + dialect)))
        exact[f"{side}_scale"] = torch.ones(1)
        arguments[f"{side}_cache"] = (exact[f"{side}_cache"] / scale).to(dtype(dialect).torch())
        arguments[f"{side}_scale"] = torch.tensor([scale])
    out = decode.check(problem, chosen, arguments)
    assert decode.error(out, decode.expected(problem, exact)) < 0.1
    unscaled = {**arguments, "k_scale": torch.ones(1), "v_scale": torch.ones(1)}
    assert decode.error(decode.expected(problem, unscaled), decode.expected(problem, exact)) > 0.5


@both
def test_a_batch_without_rows_is_launched(op: str) -> None:
    problem, chosen = decode.tiny(op), decode.config()
    arguments = decode.inputs(problem, chosen, [1])
    arguments |= {name: arguments[name][:0] for name in ("q", "out", "block_table", "seq_lens")}
    if op == "sparse_decode":
        arguments["topk_ids"] = arguments["topk_ids"][:, :0]
    assert decode.run(problem, chosen, arguments).shape == (0, 4, decode.HEAD_DIM)
