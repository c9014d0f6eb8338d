"""Faults that inference engines have shipped in their cache kernels, one test each, named after the fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen import ops
from m3gen.codegen import load_module, render, trace
from m3gen.compiler.compile import prepare
from m3gen.evaluate.gate import verify
from m3gen.interpreter import interpreting
from m3gen.ops import cache_inputs
from m3gen.ops.kv_convert import page16_shapes
from m3gen.spec import Problem, dtype
from m3gen.targets import Device
from tests.ops import cache_problems
from tests.ops.cache_problems import caches, launch


def insert(of: Problem, device: Device, rows: torch.Tensor, slots: list[int], **scales: Any) -> Any:
    """K and V caches of two pages after both were given `rows` [rows, kv_heads, head_dim]."""
    k_cache, v_cache = caches(of, 2)
    arguments = {"k": rows, "v": rows, "k_cache": k_cache, "v_cache": v_cache, "slot_mapping": torch.tensor(slots)}
    launch(of, device, {**arguments, **scales})
    return k_cache, v_cache


def scalars(value: float) -> dict[str, torch.Tensor]:
    return {"k_scale": torch.tensor([value]), "v_scale": torch.tensor([value])}


@pytest.mark.parametrize(("arch", "code_of_one"), [("gfx942", 0x40), ("gfx950", 0x38), ("sm_90", 0x38)])
def test_8_bit_codes_are_of_the_dialect_of_the_hardware(arch: str, code_of_one: int) -> None:
    """vllm#45562: gfx942's e4m3fnuz bytes taken for e4m3fn are off by a factor of 2."""
    of, device = cache_problems.problem("kv_insert", arch, scale="scalar")
    k_cache, _ = insert(of, device, torch.ones((1, 1, 128), dtype=torch.bfloat16), [3], **scalars(1.0))
    assert (k_cache.view(torch.uint8)[0, 0, 3] == code_of_one).all()
    other = torch.float8_e4m3fn if arch == "gfx942" else torch.float8_e4m3fnuz
    run = cache_problems.launcher(of, device)
    rows, swapped = torch.ones((1, 1, 128), dtype=torch.bfloat16), k_cache.view(other)
    with pytest.raises(ValueError, match=f"k_cache is {other}, expected {k_cache.dtype}"):
        run(rows, rows, swapped, swapped, torch.tensor([3]), **scalars(1.0))


@pytest.mark.parametrize(("arch", "largest"), [("gfx942", 240.0), ("gfx950", 448.0), ("sm_100", 448.0)])
def test_the_largest_number_is_that_of_the_dialect_not_a_literal(arch: str, largest: float) -> None:
    """ROCm/ATOM#2205: 240 on OCP hardware halves the range; 448 on gfx942 overflows to NaN."""
    of, device = cache_problems.problem("kv_insert", arch, scale="per_token_head")
    rows = torch.linspace(-448, 448, 128).to(torch.bfloat16)[None, None]
    planes = {"k_scale": torch.full((1, 256), 7.0), "v_scale": torch.full((1, 256), 7.0)}
    k_cache, _ = insert(of, device, rows, [200], **planes)
    assert planes["k_scale"][0, 200] == torch.tensor(448.0) / largest
    assert (planes["k_scale"] == 7).sum() == 255
    assert k_cache[1, 0, 72].float().abs().max() == largest


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_8_bit_stores_saturate_keep_nan_and_do_not_flush(arch: str) -> None:
    of, device = cache_problems.problem("kv_insert", arch, scale="scalar")
    largest = dtype(of.kv_dtype).max
    rows = torch.zeros((1, 1, 128), dtype=torch.bfloat16)
    values = [1000.0, -1000.0, float("inf"), -float("inf"), float("nan"), 2.0**-9, 7.75, 0.0, -0.0]
    rows[0, 0, : len(values)] = torch.tensor(values)
    k_cache, _ = insert(of, device, rows, [0], **scalars(1.0))
    stored = k_cache[0, 0, 0, : len(values)].float().tolist()
    assert stored[:4] == [largest, -largest, largest, -largest]
    assert stored[4] != stored[4]
    assert stored[5:] == [2.0**-9, 8.0, 0.0, 0.0]


def test_the_writer_divides_by_the_scale_that_the_reader_multiplies_by() -> None:
    """Written at unit scale and read at k_scale, everything is off by that factor."""
    for scale in ("scalar", "per_token_head"):
        of, device = cache_problems.problem("kv_insert", scale=scale)
        rows = torch.randn((5, 1, 128), generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
        made = scalars(0.5) if scale == "scalar" else {f"{side}_scale": torch.zeros(1, 256) for side in "kv"}
        k_cache, v_cache = insert(of, device, rows, [0, 1, 2, 3, 4], **made)
        out = torch.empty((2, 5, 1, 128), dtype=torch.bfloat16)
        gather = replace(of, op="kv_gather")
        table, starts = torch.tensor([[0]], dtype=torch.int32), torch.tensor([0, 5], dtype=torch.int32)
        arguments = {"k_cache": k_cache, "v_cache": v_cache, "block_table": table, "starts": starts}
        launch(gather, device, {**arguments, "k_out": out[0], "v_out": out[1], **made})
        for side in out:
            assert torch.allclose(side.float(), rows.float(), rtol=2.0**-4, atol=2.0**-9)


@pytest.mark.parametrize("name", cache_problems.OPS)
def test_page_offsets_pass_2_31(name: str) -> None:
    """vllm#47671: page times stride in 32 bits. The interpreter also checks every 32-bit operation."""
    of, device = cache_problems.problem(name, kv_heads=2)
    arguments = cache_problems.case(of, device, "page offset past 2^31").arguments
    far = [
        t for key, t in arguments.items() if key.endswith(("_cache", "source_k", "source_v")) and "cos" not in key
    ]
    assert far
    assert all((len(cache) - 1) * cache.stride(0) >= 1 << 31 for cache in far)
    launch(of, device, dict(arguments))


def test_head_offsets_pass_2_31() -> None:
    """The same fault where heads, not pages, are the outermost extent (LHBNC)."""
    of, device = cache_problems.problem("kv_insert", kv_heads=4, scale="scalar")
    stride = 1 << 30
    store = torch.empty(3 * stride + 2 * 128 * 256, dtype=dtype(of.kv_dtype).torch())
    both = store.as_strided((2, 4, 128, 256), (128 * 256, stride, 256, 1))
    both.view(torch.uint8).fill_(0)
    rows = torch.randn((2, 4, 128)).to(torch.bfloat16)
    arguments = {"k": rows, "v": rows, "k_cache": both[..., :128], "v_cache": both[..., 128:]}
    launch(of, device, {**arguments, "slot_mapping": torch.tensor([7, 130]), **scalars(1.0)})
    assert torch.equal(both[0, 3, 7, :128].float(), rows[0, 3].to(both.dtype).float())
    assert torch.equal(both[1, 3, 2, 128:].float(), rows[1, 3].to(both.dtype).float())


def test_rotation_pairs_element_i_with_i_plus_32_and_leaves_the_upper_half_alone() -> None:
    """vllm#51049: lanes of a divergent branch exchanged with the wrong partner where 64 of 128 elements turn."""
    of, device = cache_problems.problem("qk_norm_rope_insert", q_dtype="fp32", kv_dtype="fp32")
    arguments = dict(cache_problems.case(of, device, "dense layer").arguments)
    arguments["qkv"] = torch.ones_like(arguments["qkv"])
    arguments["q_weight"] = torch.zeros(128)
    arguments["eps"] = 0.0
    arguments["positions"] = torch.tensor([0, 1, 2])
    quarter_turn = torch.cat([torch.zeros(3, 32), torch.ones(3, 32)], 1)
    for table, lo, hi in ((quarter_turn, -1.0, 1.0), (quarter_turn.roll(32, 1), 1.0, 1.0)):
        arguments["cos_sin_cache"] = table.contiguous()
        launch(of, device, arguments)
        q = arguments["q_out"]
        for part, value in ((q[..., :32], lo), (q[..., 32:64], hi), (q[..., 64:], 1.0)):
            assert torch.allclose(part, torch.full_like(part, value), atol=1e-6)


def test_a_page_moves_with_its_index_and_its_scales() -> None:
    """ROCm/ATOM#1368, vllm#50882: the index cache or the scales stayed behind."""
    of, device = cache_problems.problem("kv_copy", scale="per_token_head", kv_heads=2)
    generator = torch.Generator().manual_seed(5)
    k_cache, v_cache = cache_inputs.kv_caches(of, 4, cache_inputs.CacheLayout(), generator)
    index = cache_inputs.index_cache(of, 4, "bf16", generator)
    scales = cache_inputs.scales(of, 4, generator)
    pairs = torch.tensor([[1, 3]])
    arguments = {
        "k_cache": k_cache,
        "v_cache": v_cache,
        "index_cache": index,
        "pairs": pairs,
        "index_pairs": pairs,
    }
    launch(of, device, {**arguments, **scales})

    def meant(page: int) -> list[torch.Tensor]:
        here = slice(page * 128, page * 128 + 128)
        k, v = (c[page].float() * scales[f"{s}_scale"][:, here, None] for s, c in (("k", k_cache), ("v", v_cache)))
        return [k, v, index[page].float()]

    assert all(torch.equal(source, target) for source, target in zip(meant(1), meant(3), strict=True))
    assert not torch.equal(meant(0)[0], meant(3)[0])


def test_a_zeroed_page_reads_as_zeros_whatever_its_scales_were() -> None:
    of, device = cache_problems.problem("kv_zero", scale="per_token_head")
    k_cache, v_cache = caches(of, 2)
    for cache in (k_cache, v_cache):
        cache.view(torch.uint8).fill_(0x7F)
    scales = {f"{side}_scale": torch.full((1, 256), float("nan")) for side in "kv"}
    launch(of, device, {"k_cache": k_cache, "v_cache": v_cache, "blocks": torch.tensor([1]), **scales})
    assert (k_cache[1].float() * scales["k_scale"][:, 128:, None] == 0).all()
    assert scales["k_scale"][0, :128].isnan().all()


def test_padding_rows_touch_no_cache_and_still_give_their_query() -> None:
    """Rows that pad a graph have slot -1; page 0 is the null page and must not be written either."""
    of, device = cache_problems.problem("qk_norm_rope_insert")
    arguments = dict(cache_problems.case(of, device, "peers 7 tokens").arguments)
    arguments |= {name: torch.full((7,), -1) for name in ("slot_mapping", "index_slot_mapping")}
    before = {name: arguments[name].clone() for name in ("k_cache", "v_cache", "index_cache", "qkv")}
    for name in ("q_out", "index_q_out"):
        arguments[name].fill_(float("nan"))
    launch(of, device, arguments)
    assert all(torch.equal(tensor, arguments[name]) for name, tensor in before.items())
    assert arguments["q_out"].isfinite().all()
    assert arguments["index_q_out"].isfinite().all()


@pytest.mark.parametrize("name", ["qk_norm_rope_insert", "kv_insert", "kv_copy", "kv_zero", "kv_convert"])
def test_one_compile_serves_every_number_of_rows(name: str) -> None:
    """vllm#45631: integers that are 1, or multiples of 16, are compiled in; serving then stops to compile."""
    keys = set()
    for rows in (1, 2, 16, 64, 512):
        of, device = cache_problems.problem(name, rows=rows)
        default = cache_problems.config(of, device)
        source = render(ops.get(name), of, default)
        (launch,) = trace(source, ops.get(name).example(of, default))
        keys.add(prepare(load_module(source), launch, device.architecture).key)
    assert len(keys) == 1


def test_one_compile_serves_every_gather() -> None:
    keys = set()
    for rows, context in ((1, 1024), (16, 1024), (16, 8192), (512, 2048)):
        of, device = cache_problems.problem("kv_gather", rows=rows, context=context)
        default = cache_problems.config(of, device)
        source = render(ops.get("kv_gather"), of, default)
        (launch,) = trace(source, ops.get("kv_gather").example(of, default))
        keys.add(prepare(load_module(source), launch, device.architecture).key)
    assert len(keys) == 1


def test_prefixes_that_share_a_page_gather_it_twice() -> None:
    of, device = cache_problems.problem("kv_gather")
    k_cache, v_cache = cache_inputs.kv_caches(of, 3, cache_inputs.CacheLayout(), torch.Generator().manual_seed(2))
    out = torch.zeros((2, 10, 1, 128), dtype=torch.bfloat16)
    table, starts = torch.tensor([[2], [2]], dtype=torch.int32), torch.tensor([0, 3, 10], dtype=torch.int32)
    arguments = {"k_cache": k_cache, "v_cache": v_cache, "block_table": table, "starts": starts}
    launch(of, device, {**arguments, "k_out": out[0], "v_out": out[1]})
    assert torch.equal(out[0, :3], k_cache[2, :, :3].transpose(0, 1))
    assert torch.equal(out[1, 3:], v_cache[2, :, :7].transpose(0, 1))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(-3, 3 * 128 + 3), min_size=1, max_size=9, unique=True), st.sampled_from([1, 2, 3]))
def test_any_slots_are_written_once_and_nothing_else(slots: list[int], kv_heads: int) -> None:
    of, device = cache_problems.problem("kv_insert", kv_heads=kv_heads)
    generator = torch.Generator().manual_seed(len(slots))
    k_cache, v_cache = cache_inputs.kv_caches(of, 3, cache_inputs.CacheLayout(heads_first=False), generator)
    rows = torch.randn((len(slots), kv_heads, 128), generator=generator).to(torch.bfloat16)
    expected = k_cache.clone()
    for row, slot in enumerate(slots):
        if 0 <= slot < 384:
            expected[slot // 128, :, slot % 128] = rows[row]
    arguments = {"k": rows, "v": rows, "k_cache": k_cache, "v_cache": v_cache}
    launch(of, device, {**arguments, "slot_mapping": torch.tensor(slots)}, rows=4)
    assert torch.equal(k_cache, expected)


@settings(max_examples=6, deadline=None)
@given(st.permutations(range(4)), st.sampled_from(["none", "scalar"]))
def test_to_page_16_and_back_is_the_identity(order: list[int], scale: str) -> None:
    of, device = cache_problems.problem("kv_convert", scale=scale)
    generator = torch.Generator().manual_seed(order[0])
    source = cache_inputs.kv_caches(of, 4, cache_inputs.CacheLayout(), generator)
    back = cache_inputs.kv_caches(of, 4, cache_inputs.CacheLayout(heads_first=False, interleaved=False), generator)
    middle = [torch.empty(shape, dtype=source[0].dtype) for shape in page16_shapes(of, 4, of.kv_dtype)]
    there = torch.tensor([[page, order[page]] for page in range(4)])
    extra = scalars(0.3) if scale == "scalar" else {}
    with interpreting():
        run = cache_problems.launcher(of, device, tile_n=64)
        run(*source, *middle, there, target_layout="page16", **extra)
        run(*middle, *back, there.flip(1), source_layout="page16", **extra)
    for before, after in zip(source, back, strict=True):
        assert torch.equal(before.contiguous().view(torch.uint8), after.contiguous().view(torch.uint8))


def test_an_8_bit_cache_without_scales_was_to_be_gathered_in_the_models_dtype() -> None:
    """Its cases and its example asked for rows that its launcher refuses: there is no scale to multiply by."""
    of, device = cache_problems.problem("kv_gather", kv_dtype="e4m3fnuz")
    op, config = ops.get("kv_gather"), cache_problems.config(of, device)
    source = render(op, of, config)
    (launch,) = trace(source, op.example(of, config))
    assert launch.kernel == "gather_pages"
    verdict = verify(op, of, config, source, seeds=(0,))
    assert verdict.ok, verdict.reason
