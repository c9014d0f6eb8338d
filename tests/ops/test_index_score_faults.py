"""What other scorers got wrong in service, one test a fault, each with the right answer of the reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from tests.ops import index

OP = ops.get("index_score")
INF = float("inf")
LOCAL = torch.tensor(1e29).double()
INIT = torch.tensor(1e30).double()


def setup(query_len: int = 1, heads: int = 1, **values: Any) -> tuple[Any, Any]:
    problem, device = index.problem("index_score", group_size=heads, query_len=query_len, rows=4)
    return problem, index.config(OP, problem, device, **{"splits": 2, **values})


def inputs(lens: list[int], query_len: int = 1, heads: int = 1, width: int = 16) -> dict[str, Any]:
    """Real keys in every page; a page per block of every request."""
    generator = torch.Generator().manual_seed(5)
    rows, blocks = len(lens) * query_len, max(1, *(-(-length // 128) for length in lens))
    return {
        "q": torch.randn((rows, heads, 128), generator=generator).bfloat16(),
        "k_cache": torch.randn((blocks * len(lens), 128, 128), generator=generator).bfloat16(),
        "block_table": torch.randperm(blocks * len(lens), generator=generator).int().reshape(len(lens), blocks),
        "seq_lens": torch.tensor(lens, dtype=torch.int32),
        "scores": torch.full((heads, rows, width), float("nan")),
        "query_len": query_len,
        "init_blocks": 0,
        "local_blocks": 1,
    }


def scored(arguments: dict[str, Any], query_len: int = 1, heads: int = 1, **values: Any) -> torch.Tensor:
    """The scores of one launch, which agree with the reference."""
    from m3gen.ops.index_inputs import reference

    problem, config = setup(query_len, heads, **values)
    wanted = reference(problem, arguments)
    index.run(OP, problem, config, arguments)
    assert index.same(arguments["scores"], wanted)
    return arguments["scores"].double()


def test_scores_of_a_longer_step_before_do_not_survive_a_shorter_one() -> None:
    """https://github.com/vllm-project/vllm/pull/54604: a reused buffer keeps what is not written again."""
    long, short = inputs([1000, 700]), inputs([200, 5])
    short["scores"] = long["scores"]
    scored(long)
    found = scored(short)
    assert (found[0, 0, 2:] == -INF).all()
    assert (found[0, 1, 1:] == -INF).all()


@pytest.mark.parametrize("rows", [3, 4])
def test_token_major_scores_are_no_head_major_ones_even_when_rows_equal_heads(rows: int) -> None:
    """https://github.com/vllm-project/vllm/issues/48603: the layout is in the strides, never told by the shape."""
    arguments = inputs([300] * rows, heads=4)
    arguments["scores"] = torch.full((rows, 4, 16), float("nan")).transpose(0, 1)
    token_major = scored(arguments, heads=4)
    head_major = scored(inputs([300] * rows, heads=4), heads=4)
    assert torch.equal(token_major, head_major)


def test_a_score_buffer_under_the_longest_sequence_is_refused() -> None:
    """https://github.com/sgl-project/sglang/issues/31133: sized by a stale maximum, written out of bounds."""
    problem, config = setup()
    launcher = load_module(render(OP, problem, config)).index_score
    arguments = inputs([1300], width=8)
    with pytest.raises(ValueError, match="scores has 8 blocks, expected the 11 of block_table or more"):
        launcher(**arguments)
    assert arguments["scores"].isnan().all()


@pytest.mark.parametrize("values", [{"share": "splits"}, {"share": "blocks", "blocks": 4}])
def test_a_length_past_the_table_writes_nothing_out_of_bounds(values: dict[str, Any]) -> None:
    """The same fault by a length that the host cannot see: what is past the buffer stays as it was."""
    problem, config = setup(**values)
    arguments = inputs([300, 40])
    store = torch.full((1, 2, 24), 7.0)
    arguments |= {"scores": store[:, :, :3], "seq_lens": torch.tensor([1300, 40], dtype=torch.int32)}
    index.run(OP, problem, config, arguments)
    assert (store[:, :, 3:] == 7.0).all()
    assert store[:, 0, :3].isfinite().all()


def test_a_request_of_length_zero_scores_nothing_and_ends() -> None:
    """https://github.com/flashinfer-ai/flashinfer/issues/5015: length 0 less 1 taken as unsigned."""
    assert (scored(inputs([0, 130, 0]))[0, [0, 2]] == -INF).all()


def test_rows_of_padding_score_nothing_beside_real_ones() -> None:
    """https://github.com/NVIDIA/TensorRT-LLM/pull/18034: pad tokens counted as requests."""
    arguments = inputs([257] * 5 + [0] * 3, query_len=4)
    arguments["block_table"][5:] = 0  # the null block
    found = scored(arguments, query_len=4)
    assert (found[0, 20:] == -INF).all()
    assert (found[0, :20, 0].abs() < 100).all()


def test_query_rows_before_the_sequence_began_see_nothing() -> None:
    """https://github.com/vllm-project/vllm/issues/49054: query length 3 on one token, rows 0 and 1 are empty."""
    found = scored(inputs([1, 129], query_len=3), query_len=3)
    assert (found[0, :2] == -INF).all()
    assert found[0, 2, 0] == LOCAL


def test_a_block_past_an_earlier_rows_end_is_not_visible_to_that_row() -> None:
    """Forced blocks are counted from each row's own end, not from the request's."""
    found = scored(inputs([129], query_len=2), query_len=2)
    assert found[0, 0].tolist()[:2] == [LOCAL, -INF]
    assert found[0, 1, 1] == LOCAL
    assert found[0, 1, 0].abs() < 100


def test_a_block_that_is_initial_and_local_counts_as_local() -> None:
    arguments = inputs([100, 400]) | {"init_blocks": 2, "local_blocks": 3}
    found = scored(arguments)
    assert found[0, 0].tolist()[:2] == [LOCAL, -INF]
    assert found[0, 1].tolist()[:5] == [INIT, LOCAL, LOCAL, LOCAL, -INF]


@pytest.mark.parametrize("scorer", ["matrix", "vector"])
@pytest.mark.parametrize("masked", [True, False])
def test_garbage_past_the_end_of_a_page_never_reaches_a_score(scorer: str, masked: bool) -> None:
    """https://github.com/vllm-project/vllm-ascend/issues/13391: what lies past the tail drifts the output."""
    arguments = inputs([130, 127]) | {"local_blocks": 0}
    for request, block, live in ((0, 1, 2), (1, 0, 127)):
        arguments["k_cache"][arguments["block_table"][request, block], live:] = float("nan")
    found = scored(arguments, scorer=scorer, masked_loads=masked)
    assert found[0, 0, :2].isfinite().all()
    assert found[0, 1, 0].isfinite()


@pytest.mark.parametrize("scorer", ["matrix", "vector"])
@pytest.mark.parametrize("tile_n", [32, 128])
def test_a_nan_in_real_data_is_kept_and_stays_in_its_block(scorer: str, tile_n: int) -> None:
    """A maximum that leaves NaN out would hide it, one that spreads would take other blocks along."""
    arguments = inputs([512]) | {"local_blocks": 0}
    arguments["k_cache"][arguments["block_table"][0, 1], 3, 77] = float("nan")
    found = scored(arguments, scorer=scorer, tile_n=tile_n)
    assert found[0, 0, :4].isnan().tolist() == [False, True, False, False]


def test_a_block_of_infinite_keys_keeps_its_infinity_and_no_other_blocks_score() -> None:
    """20 blocks, one of nothing but -inf keys: its score is -inf, not the smallest number of some code."""
    arguments = inputs([20 * 128], width=32) | {"local_blocks": 0}
    arguments["k_cache"][arguments["block_table"][0, 7]] = -INF
    arguments["q"] = arguments["q"].abs()
    found = scored(arguments)
    assert found[0, 0, 7] == -INF
    assert found[0, 0, [b for b in range(20) if b != 7]].isfinite().all()


def test_page_offsets_pass_two_to_the_thirty_first() -> None:
    """https://github.com/vllm-project/vllm/issues/47671: page times stride in 32 bits."""
    problem, config = setup()
    case = index.case("index_score", problem, config, "page offset past 2^31")
    assert int(case.arguments["block_table"].min()) > (1 << 31) // (128 * 144)
    index.run(OP, problem, config, case.arguments)
    assert index.same(case.arguments["scores"], OP.reference(case)["scores"])


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("q", lambda t: t.float(), "q is torch.float32, expected torch.bfloat16"),
        ("q", lambda t: t[..., :64], r"q has shape \[1, 1, 64\], expected \[1, 1, 128\]"),
        ("k_cache", lambda t: t[:, :64], r"k_cache has shape \[3, 64, 128\], expected \[any, 128, 128\]"),
        ("k_cache", lambda t: t.to(torch.float8_e4m3fnuz), "k_cache is torch.float8_e4m3fnuz"),
        ("k_cache", lambda t: t.transpose(1, 2), "k_cache has last stride 128, expected 1"),
        ("block_table", lambda t: t.long(), "block_table is torch.int64"),
        ("seq_lens", lambda t: t.repeat(2), r"seq_lens has shape \[2\], expected \[1\]"),
        ("scores", lambda t: t.double(), "scores is torch.float64"),
        ("scores", lambda t: t.to("meta"), "scores is on meta, expected cpu"),
        ("query_len", lambda _: 0, "query_len is 0"),
        ("init_blocks", lambda _: -1, "init_blocks is -1"),
        ("local_blocks", lambda _: -2, "local_blocks is -2"),
    ],
)
def test_a_wrong_argument_is_named_before_any_launch(name: str, spoil: Any, message: str) -> None:
    problem, config = setup()
    arguments = inputs([300])
    with pytest.raises(ValueError, match=message):
        load_module(render(OP, problem, config)).index_score(**{**arguments, name: spoil(arguments[name])})
    assert arguments["scores"].isnan().all()
