from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen import ops
from m3gen.codegen import render
from m3gen.errors import UserError
from m3gen.evaluate.gate import verify
from m3gen.ops import Cache, index_inputs
from m3gen.spec import MINIMAX_M3, ROW_BUCKETS, Status
from m3gen.targets import default_device
from tests.ops import index
from tests.problems import ARCHS

OP = ops.get("index_score")


@pytest.mark.parametrize("arch", ARCHS)
def test_the_fields_default_is_in_the_space_of_every_problem(arch: str) -> None:
    for dtypes in index.DTYPES:
        for rows in ROW_BUCKETS:
            for heads, query_len in ((1, 1), (4, 1), (4, 3)):
                problem, device = index.problem(
                    "index_score", arch, dtypes, rows=rows, group_size=heads, query_len=query_len
                )
                assert OP.default(problem, device) in OP.space(problem, device)


@pytest.mark.parametrize(
    ("arch", "rows", "splits", "warps", "stages"),
    [
        ("sm_90", 1, 256, 4, 3),
        ("sm_90", 64, 64, 4, 3),
        ("gfx942", 1, 256, 4, 1),
        ("gfx942", 64, 8, 2, 1),
        ("gfx950", 8, 64, 4, 1),
        ("gfx950", 16, 32, 2, 1),
        ("gfx950", 64, 8, 2, 1),
    ],
)
def test_the_default_takes_vllms_programs_and_its_own_waves(
    arch: str, rows: int, splits: int, warps: int, stages: int
) -> None:
    problem, device = index.problem("index_score", arch, rows=rows)
    default = OP.default(problem, device)
    assert (default["splits"], default["num_warps"], default["num_stages"]) == (splits, warps, stages)
    assert default["scorer"] == ("vector" if arch.startswith("gfx") else "matrix")


def test_the_problem_of_a_rank_has_its_index_heads_and_queries_like_the_keys() -> None:
    device = default_device("gfx950")
    found = [
        OP.problem(device, MINIMAX_M3.shard(tp), Cache(kv, scale), 2)
        for tp in (1, 4)
        for kv, scale in (("bf16", "none"), ("e4m3fn", "scalar"))
    ]
    assert [(p.group_size, p.kv_heads, p.q_dtype, p.kv_dtype, p.kv_scale) for p in found if p] == [
        (4, 1, "bf16", "bf16", "none"),
        (4, 1, "e4m3fn", "e4m3fn", "none"),
        (1, 1, "bf16", "bf16", "none"),
        (1, 1, "e4m3fn", "e4m3fn", "none"),
    ]


def test_two_fp8_dialects_do_not_mix() -> None:
    problem, device = index.problem("index_score", "gfx942", ("e4m3fn", "fp8"))
    with pytest.raises(UserError, match="one fp8 dialect, got e4m3fn and e4m3fnuz"):
        OP.space(problem, device)


def test_work_counts_every_key_once_however_many_heads_read_it() -> None:
    problem, device = index.problem("index_score", rows=64, group_size=4, query_len=4, context=8192)
    (work,) = OP.work(problem, index.config(OP, problem, device, splits=16))
    assert work.streamed_bytes == 16 * 8192 * 256
    assert work.flops == 2 * 64 * 4 * 8192 * 128
    assert work.written_bytes == 64 * 4 * 64 * 4
    assert work.loop_trips == 4
    (half,) = OP.work(problem, index.config(OP, problem, device, share="blocks", blocks=8, tile_n=64))
    assert half.loop_trips == 16
    assert half.lookups == 0.5


def by_one_big_product(
    q: torch.Tensor, k: torch.Tensor, table: torch.Tensor, lens: list[int], query_len: int, init: int, local: int
) -> torch.Tensor:
    """The scores over gathered sequences, by masks and one reshape: nothing in common with the reference."""
    rows, heads, _ = q.shape
    blocks, (_, page, dim) = table.shape[1], k.shape
    gathered = k[table.long()].reshape(len(lens), blocks * page, dim).double()
    request = torch.arange(rows) // query_len
    kv_len = torch.tensor(lens)[request] - query_len + torch.arange(rows) % query_len + 1
    products = torch.einsum("rhd,rtd->hrt", q.double(), gathered[request])
    visible = torch.arange(blocks * page) < kv_len[:, None]
    products = torch.where(visible, products, float("-inf")).reshape(heads, rows, blocks, page)
    scores = products.sort(-1).values[..., -1]  # NaN sorts last
    block = torch.arange(blocks)
    seen = block * page < kv_len[:, None]
    last = (kv_len[:, None] - 1) // page
    scores = torch.where(seen & (block < init), torch.tensor(1e30).double(), scores)
    return torch.where(seen & (block > last - local), torch.tensor(1e29).double(), scores)


@settings(max_examples=30, deadline=None)
@given(
    lens=st.lists(st.integers(0, 600), min_size=1, max_size=3),
    query_len=st.integers(1, 4),
    heads=st.integers(1, 3),
    init=st.integers(0, 3),
    local=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_the_reference_is_the_definition(
    lens: list[int], query_len: int, heads: int, init: int, local: int, seed: int
) -> None:
    problem, _ = index.problem("index_score", group_size=heads, query_len=query_len, rows=4)
    generator = torch.Generator().manual_seed(seed)
    blocks = max(1, *(-(-length // 128) for length in lens))
    q = torch.randn((len(lens) * query_len, heads, 128), generator=generator).bfloat16()
    k = torch.randn((blocks * len(lens), 128, 128), generator=generator).bfloat16()
    k[0, 3, 4] = float("nan")
    table = torch.randperm(len(k), generator=generator).int().reshape(len(lens), blocks)
    arguments = {
        "q": q,
        "k_cache": k,
        "block_table": table,
        "seq_lens": torch.tensor(lens, dtype=torch.int32),
        "scores": torch.empty((heads, len(q), blocks + 2)),
        "init_blocks": init,
        "local_blocks": local,
    }
    found = index_inputs.reference(problem, arguments)
    assert (found[:, :, blocks:] == float("-inf")).all()
    assert index.same(found[:, :, :blocks], by_one_big_product(q, k, table, lens, query_len, init, local), 1e-9)


def test_the_cases_hold_what_hurts() -> None:
    problem, device = index.problem("index_score", group_size=2, query_len=2, rows=4)
    found = {case.name: case for case in OP.cases(problem, OP.default(problem, device), 0)}
    assert {case.tolerances for case in found.values()} == {"awkward", "peers"}
    lengths = found["lengths"].arguments
    assert {0, 2, 127, 128, 129} <= set(lengths["seq_lens"].tolist())
    assert lengths["k_cache"][0].isnan().all(), "page 0 is never real"
    assert not lengths["scores"].is_contiguous()
    assert lengths["scores"].isnan().all()
    spoiled = OP.reference(found["nan and infinities in the data"])["scores"]
    assert spoiled.isnan().any()
    assert (spoiled == float("inf")).any()
    far = found["page offset past 2^31"].arguments
    assert int(far["block_table"].max()) * far["k_cache"].stride(0) >= 1 << 31
    early = OP.reference(found["shorter than the query"])["scores"]
    assert (early[:, 0] == float("-inf")).all()
    assert (early[:, 1, 0] == torch.tensor(1e29).double()).all()


SOME_CONFIGS = [
    {"scorer": "matrix", "heads_in": "n", "tile_n": 64, "share": "blocks", "blocks": 2},
    {"scorer": "matrix", "heads_in": "m", "tile_n": 32, "splits": 1, "masked_loads": True},
    {"scorer": "vector", "heads": "apart", "rows_packed": 2, "tile_n": 32, "splits": 2},
    {"scorer": "vector", "heads": "together", "rows_packed": 1, "tile_n": 64, "share": "blocks", "blocks": 64},
    {"scorer": "matrix", "heads": "apart", "rows_packed": 4, "splits": 4},
]


@pytest.mark.parametrize("values", SOME_CONFIGS, ids=lambda values: "-".join(map(str, values.values())))
def test_every_structure_passes_the_gate(values: dict) -> None:
    problem, device = index.problem("index_score", group_size=2, query_len=3, rows=4)
    config = index.config(OP, problem, device, **values)
    verdict = verify(OP, problem, config, render(OP, problem, config), seeds=(0,))
    assert verdict.status is Status.OK, verdict.reason


@pytest.mark.parametrize("dtypes", index.DTYPES, ids="-".join)
def test_every_dtype_is_right_on_awkward_lengths(dtypes: tuple[str, str]) -> None:
    arch = "gfx942" if dtypes[1] == "fp8" else "sm_90"
    problem, device = index.problem("index_score", arch, dtypes, group_size=2)
    config = index.config(OP, problem, device, splits=4)
    for name in ("lengths", "nan and infinities in the data"):
        case = index.case("index_score", problem, config, name)
        index.run(OP, problem, config, case.arguments)
        assert index.same(case.arguments["scores"], OP.reference(case)["scores"])


def test_any_config_of_the_space_gives_the_same_scores() -> None:
    problem, device = index.problem("index_score", group_size=2, query_len=2, rows=4)
    space, draw = OP.space(problem, device), random.Random(0)
    for _ in range(12):
        config = space.config(draw.randrange(len(space)))
        case = index.case("index_score", problem, config, "shorter than the query")
        index.run(OP, problem, config, case.arguments)
        assert index.same(case.arguments["scores"], OP.reference(case)["scores"]), config
