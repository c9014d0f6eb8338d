from __future__ import annotations

import math

import pytest
import torch

from m3gen import ops
from m3gen.ops import decode_inputs
from m3gen.spec import ROW_BUCKETS
from tests import problems

OP = ops.get("sparse_decode")


@pytest.mark.parametrize("arch", problems.ARCHS)
def test_default_and_field_are_in_the_space_of_every_problem(arch: str) -> None:
    for fp8 in (False, True):
        for rows in ROW_BUCKETS:
            for query_len in (1, 4):
                problem, device = problems.sparse_decode(arch, fp8=fp8, rows=rows, query_len=query_len)
                space, field = OP.space(problem, device), OP.field(problem, device)
                assert field in space
                assert OP.default(problem, device) in space
                assert (field["tile_n"], field["num_warps"]) == (128, 4)


@pytest.mark.parametrize(
    ("rows", "kv_heads", "splits"), [(1, 1, 16), (16, 1, 16), (64, 1, 4), (256, 1, 1), (64, 4, 1)]
)
def test_the_default_aims_at_256_programs(rows: int, kv_heads: int, splits: int) -> None:
    problem, device = problems.sparse_decode(rows=rows, kv_heads=kv_heads)
    assert OP.default(problem, device)["splits"] == splits


def test_past_sixteen_pages_all_contexts_are_one_problem() -> None:
    loads = [OP.canonical(problems.sparse_decode(context=c)[0]).context for c in (1024, 2048, 8192, 1048576)]
    assert loads == [1024, 2048, 2048, 2048]


def test_work_counts_every_page_once_and_every_partial_twice() -> None:
    problem, device = problems.sparse_decode(rows=64)
    space = OP.space(problem, device)
    config = space.canonical({**OP.field(problem, device), "splits": 4})
    attend, merge = OP.work(problem, config)
    assert attend.streamed_bytes == 64 * 2048 * 2 * 128 * 2  # 1 MiB of bf16 K and V per row and KV head
    assert attend.flops == 64 * 16 * 2048 * 128 * 4
    assert attend.written_bytes == merge.read_bytes == 4 * 64 * 16 * (128 * 2 + 4)
    assert merge.written_bytes == 64 * 16 * 128 * 2
    assert attend.loop_trips == 4


@pytest.mark.parametrize(("context", "splits", "trips"), [(1024, 1, 8), (1024, 4, 4), (2048, 1, 16)])
def test_a_short_list_ends_the_loop_early(context: int, splits: int, trips: int) -> None:
    problem, device = problems.sparse_decode(rows=64, context=context)
    space = OP.space(problem, device)
    config = space.canonical({**OP.field(problem, device), "merge": "kernel", "merge_warps": 4, "splits": splits})
    assert OP.work(problem, config)[0].loop_trips == trips


def test_fp8_halves_the_stream() -> None:
    (bf16, device), (fp8, _) = problems.sparse_decode(rows=64), problems.sparse_decode(rows=64, fp8=True)
    one, half = (OP.work(p, OP.default(p, device))[0].streamed_bytes for p in (bf16, fp8))
    assert one == 2 * half


def cases(seed: int = 0, **fields: object):
    problem, device = problems.sparse_decode(**fields)
    return problem, list(OP.cases(problem, OP.default(problem, device), seed))


@pytest.mark.parametrize(
    "fields", [{}, {"fp8": True}, {"query_len": 4, "rows": 4}, {"group_size": 6, "kv_heads": 2}]
)
def test_the_reference_is_finite_on_every_case_and_zero_exactly_where_nothing_is_selected(
    fields: dict,
) -> None:
    _, found = cases(**fields)
    assert {case.tolerances for case in found} == {"awkward", "peers"}
    for case in found:
        reference = OP.reference(case)["out"]
        assert reference.isfinite().all()
        zero = {row for row in range(reference.shape[0]) if (reference[row] == 0).all()}
        assert zero == set(case.zero_rows)
        assert case.arguments["out"].isnan().all()


def test_the_cases_hold_what_hurts() -> None:
    problem, found = cases()
    by_name = {case.name: case for case in found}
    lengths = by_name["lengths"].arguments
    assert {0, 1, 127, 128, 129} <= set(lengths["seq_lens"].tolist())
    lists = lengths["topk_ids"]
    middle = [(row[:-1] == -1) & (row[1:] >= 0) for row in lists[0]]
    assert any(hole.any() for hole in middle), "no list with a hole"
    assert (lists[:, -1] == -1).all()
    assert lengths["k_cache"][0].isnan().all(), "page 0 is never real"
    far = by_name["page offset past 2^31"].arguments
    assert int(far["block_table"].max()) * far["k_cache"].stride(0) >= 1 << 31
    assert not lengths["q"].is_contiguous()
    assert problem.topk * problem.page_size < int(lengths["seq_lens"].max())


def test_seeds_differ_and_repeat() -> None:
    first, again, other = (cases(seed)[1][0].arguments["q"] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_with_every_block_selected_the_reference_is_dense_causal_attention(kv_heads: int) -> None:
    """An independent formula: torch's own scaled_dot_product_attention over the gathered sequence."""
    problem, _ = problems.sparse_decode(kv_heads=kv_heads, group_size=4, query_len=4, rows=4)
    generator = torch.Generator().manual_seed(7)
    length, pages = 300, 3
    k, v = (torch.randn((pages, kv_heads, 128, 128), generator=generator) for _ in range(2))
    q = torch.randn((4, 4 * kv_heads, 128), generator=generator)
    table = torch.tensor([[2, 0, 1]], dtype=torch.int32)
    arguments = {
        "q": q,
        "k_cache": k,
        "v_cache": v,
        "topk_ids": torch.tensor([1, 2, 0] + [-1] * 13, dtype=torch.int32).expand(kv_heads, 4, 16),
        "block_table": table,
        "seq_lens": torch.tensor([length], dtype=torch.int32),
        "softmax_scale": 128**-0.5,
    }
    gathered = [x[table[0].long()].transpose(0, 1).reshape(1, kv_heads, -1, 128)[:, :, :length] for x in (k, v)]
    visible = torch.arange(length)[None, :] < torch.arange(length - 3, length + 1)[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1)[None].double(),
        *(x.double().repeat_interleave(4, dim=1) for x in gathered),
        attn_mask=visible,
    )
    assert torch.allclose(decode_inputs.reference(problem, arguments), expected[0].transpose(0, 1), atol=1e-12)


def test_unknown_dtype_variants_have_no_tolerance_by_accident() -> None:
    bf16, fp8 = problems.sparse_decode()[0], problems.sparse_decode(fp8=True)[0]
    assert OP.tolerance(bf16, "awkward").row_rms == 4e-3
    assert OP.tolerance(fp8, "awkward").row_rms == 3e-2
    peers = OP.tolerance(bf16, "peers")
    assert (peers.mean_abs, peers.max_abs) == (2.5e-4, 1.7e-2)
    assert math.isclose(
        OP.tolerance(problems.sparse_decode(q_dtype="fp32", kv_dtype="fp32")[0], "awkward").row_rms, 2e-6
    )
