"""What holds of every cache op: its spaces, its modules, its traces, and the gate."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.evaluate.gate import verify
from m3gen.ops import Cache
from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3
from m3gen.targets import default_device
from tests import problems
from tests.ops import cache_problems
from tests.ops.cache_problems import OPS

SCALES = ("none", "scalar", "per_token_head")


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("arch", problems.ARCHS)
def test_the_default_is_in_the_space_of_every_problem(name: str, arch: str) -> None:
    for scale in SCALES:
        for heads, group in ((1, 16), (2, 16), (4, 16), (3, 6), (1, 1)):
            of, device = cache_problems.problem(name, arch, scale=scale, kv_heads=heads, group_size=group)
            op = ops.get(name)
            space = op.space(of, device)
            assert op.default(of, device) in space
            assert len(space) > 5


def test_the_defaults_are_the_fields() -> None:
    """vLLM's fused op: 256 threads, 32 to a head. Its reshape_and_cache_flash: a program per row."""
    for arch, warps in (("gfx942", 4), ("sm_90", 8)):
        default = ops.get("qk_norm_rope_insert").default(*cache_problems.problem("qk_norm_rope_insert", arch))
        assert (default["rows"], default["heads"], default["num_warps"]) == (1, 8, warps)
        default = ops.get("kv_insert").default(*cache_problems.problem("kv_insert", arch, kv_heads=4))
        assert (default["rows"], default["heads"]) == (1, 4)
        assert default["num_warps"] == 4 * 128 // default_device(arch).architecture.wave_size


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_candidate_renders_to_a_module_with_its_launcher(name: str, scale: str) -> None:
    of, device = cache_problems.problem(name, scale=scale)
    op = ops.get(name)
    space = op.space(of, device)
    for identifier in range(0, len(space), max(1, len(space) // 6)):
        source = render(op, of, space.config(identifier))
        functions = [node.name for node in ast.parse(source.text).body if isinstance(node, ast.FunctionDef)]
        assert functions[-1] == source.entry == name
        assert "workspace" in functions
        assert not any(mark in source.text for mark in ("{{", "{%", "{#"))
        assert "\n\n\n\n" not in source.text
        assert not any(line != line.rstrip() for line in source.text.splitlines())


@pytest.mark.parametrize("name", OPS)
def test_the_text_knows_the_config_and_not_the_load(name: str) -> None:
    of, device = cache_problems.problem(name, kv_heads=4)
    op = ops.get(name)
    space = op.space(of, device)
    texts = {render(op, of, space.config(id)).sha for id in range(len(space))}
    assert len(texts) == len(space)
    default = op.default(of, device)
    larger = cache_problems.at_load(of, 512)
    assert render(op, of, default).sha == render(op, larger, default).sha


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("scale", SCALES)
def test_work_names_the_launches_that_the_example_makes(name: str, scale: str) -> None:
    of, device = cache_problems.problem(name, scale=scale, rows=64)
    op = ops.get(name)
    for default in (op.default(of, device), op.space(of, device).config(0)):
        launches = trace(render(op, of, default), op.example(of, default))
        work = op.work(of, default)
        assert [launch.kernel for launch in launches] == [item.kernel for item in work]
        assert all(launch.programs >= 1 for launch in launches)
        (item,) = work
        assert item.written_bytes > 0
        assert item.streamed_bytes <= item.read_bytes


def test_bytes_of_work_are_those_of_the_shapes() -> None:
    of, device = cache_problems.problem("kv_copy", rows=2)
    (work,) = ops.get("kv_copy").work(of, ops.get("kv_copy").default(of, device))
    assert work.written_bytes == 2 * (65536 + 32768)  # a bf16 page of K and V, and of index K
    of, device = cache_problems.problem("kv_insert", scale="scalar", rows=4)
    (work,) = ops.get("kv_insert").work(of, ops.get("kv_insert").default(of, device))
    assert work.written_bytes == 4 * (256 + 256)  # 8-bit K and V, bf16 index K
    of, device = cache_problems.problem("kv_gather", rows=2)
    (work,) = ops.get("kv_gather").work(of, ops.get("kv_gather").default(of, device))
    assert work.written_bytes == work.streamed_bytes == 2 * 1024 * 512


@pytest.mark.parametrize("name", OPS)
def test_the_query_length_is_no_part_of_a_cache_op_and_most_know_no_context(name: str) -> None:
    device = default_device("gfx950")
    op, shard, cache = ops.get(name), MINIMAX_M3.shard(4), Cache("e4m3fn", "scalar")
    one, four = (op.problem(device, shard, cache, query_len) for query_len in (1, 4))
    assert one == four is not None
    short, long = (op.canonical(one.with_load(16, context)) for context in (1024, 1 << 20))
    assert (short == long) == (name != "kv_gather")
    assert long.context == (CONTEXT_BUCKETS[0] if name != "kv_gather" else 1 << 20)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("scale", SCALES)
def test_cases_write_where_they_say_and_leave_room_to_see_a_stray_write(name: str, scale: str) -> None:
    of, device = cache_problems.problem(name, scale=scale, kv_heads=2)
    op = ops.get(name)
    for case in op.cases(of, op.default(of, device), 0):
        reference = op.reference(case)
        assert set(reference) == set(case.outputs) >= set(case.kept)
        for output in case.kept:
            before, after = case.arguments[output], reference[output]
            assert before.shape == after.shape
            changed = before.double() != after.double()
            assert not changed.all(), f"{case.name}: all of {output} is written"
        for output in case.exact:
            assert reference[output].dtype == case.arguments[output].dtype


GATED: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("qk_norm_rope_insert", {}, {}),
    ("qk_norm_rope_insert", {"scale": "scalar"}, {"kinds": "together", "rows": 2}),
    ("qk_norm_rope_insert", {"scale": "per_token_head", "kv_heads": 2, "group_size": 6}, {"rows": 4}),
    ("qk_norm_rope_insert", {"q_dtype": "fp32", "kv_dtype": "fp32"}, {"rows": 4}),
    ("qk_norm_rope_insert", {"q_dtype": "fp16", "kv_dtype": "fp16", "arch": "sm_90"}, {"rows": 4}),
    ("kv_insert", {}, {}),
    ("kv_insert", {"scale": "scalar", "kv_heads": 2}, {"sides": "apart", "rows": 2}),
    ("kv_insert", {"scale": "per_token_head", "kv_heads": 3, "arch": "gfx950"}, {"rows": 4}),
    ("kv_gather", {}, {}),
    ("kv_gather", {"scale": "scalar", "kv_heads": 2}, {"parts": 1}),
    ("kv_gather", {"scale": "per_token_head", "arch": "gfx950"}, {"parts": 4}),
    ("kv_copy", {}, {}),
    ("kv_copy", {"scale": "per_token_head", "kv_heads": 3, "arch": "gfx950"}, {"parts": 1}),
    ("kv_convert", {}, {}),
    ("kv_convert", {"kv_dtype": "e4m3fnuz"}, {"tile_n": 64}),
    ("kv_convert", {"scale": "scalar"}, {"tile_n": 64}),
    ("kv_convert", {"scale": "per_token_head", "kv_heads": 2, "arch": "gfx950"}, {"tile_n": 64}),
    ("kv_zero", {}, {}),
    ("kv_zero", {"scale": "per_token_head", "kv_heads": 3, "arch": "gfx950"}, {"parts": 1}),
)


@pytest.mark.parametrize(("name", "fields", "values"), GATED)
def test_the_gate_passes(name: str, fields: dict[str, Any], values: dict[str, Any]) -> None:
    of, device = cache_problems.problem(name, **fields)
    chosen = cache_problems.config(of, device, **values)
    verdict = verify(ops.get(name), of, chosen, render(ops.get(name), of, chosen), seeds=(0,))
    assert verdict.ok, verdict.reason


# What each op must not get away with: a piece of its module, and what stands there instead.
SLOT_CLAMPED = "return tl.minimum(slot, slots - 1), is_live & (slot >= 0)"
WRONG = (
    ("qk_norm_rope_insert", "scalar", "1.0 + tl.load(weight_ptr + offs_d)", "tl.load(weight_ptr + offs_d)"),
    ("qk_norm_rope_insert", "scalar", "-sin, sin", "sin, -sin"),
    ("qk_norm_rope_insert", "scalar", "k = tl.div_rn(k, scale)", "k = k * 1.0"),
    ("qk_norm_rope_insert", "none", "return slot, is_live & (slot >= 0)", "return tl.maximum(slot, 0), is_live"),
    (
        "qk_norm_rope_insert",
        "none",
        ".to(tl.float32)\n    has_partner",
        ".to(tl.float32) * 1.002\n    has_partner",
    ),
    ("kv_insert", "per_token_head", "tl.where(scale > 0.0, scale, 1.0)", "scale"),
    ("kv_insert", "scalar", "-240.0, 240.0", "-224.0, 224.0"),
    ("kv_insert", "none", "return slot, is_live & (slot >= 0) & (slot < slots)", SLOT_CLAMPED),
    ("kv_insert", "none", "slot_mapping_ptr, index_slots", "slot_mapping_ptr, 0 * index_slots"),
    ("kv_gather", "scalar", "* k_scale)", "* 1.0)"),
    ("kv_gather", "none", "offs_n = tile %", "page = tl.minimum(page, pages - 1)\n        offs_n = tile %"),
    ("kv_copy", "none", "target * stride_v_page", "source * stride_v_page"),
    ("kv_copy", "per_token_head", "scale_ptr + target * PAGE", "scale_ptr + source * PAGE"),
    ("kv_convert", "none", "offs_d // X * stride_outer + offs_d % X", "offs_d"),
    ("kv_zero", "per_token_head", "tl.full([TILE_N], 1.0", "tl.full([TILE_N], 0.0"),
    ("kv_zero", "none", "return page, (page >= 0)", "return tl.maximum(page, 0), (page >= -1)"),
)


@pytest.mark.parametrize(("name", "scale", "right", "wrong"), WRONG)
def test_the_gate_refuses(name: str, scale: str, right: str, wrong: str) -> None:
    of, device = cache_problems.problem(name, scale=scale)
    chosen = cache_problems.config(of, device)
    source = render(ops.get(name), of, chosen)
    assert right in source.text
    spoiled = replace(source, text=source.text.replace(right, wrong))
    assert not verify(ops.get(name), of, chosen, spoiled, seeds=(0,)).ok
