"""What other selectors got wrong in service, one test a fault, each with the right answer of the reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.ops import topk_inputs
from tests.ops import index
from tests.ops.test_index_topk import setup

OP = ops.get("index_topk")
INF, NAN = float("inf"), float("nan")
STRUCTURES: list[dict[str, Any]] = [
    {"splits": 1},
    {"splits": 2, "merge": "kernel"},
    {"splits": 2, "merge": "last"},
    {"splits": 1, "select": "sort"},
]


def inputs(scores: torch.Tensor, lens: list[int], topk: int = 16) -> dict[str, Any]:
    heads, rows, _ = scores.shape
    return {
        "scores": scores,
        "seq_lens": torch.tensor(lens, dtype=torch.int32),
        "ids": torch.full((heads, rows, topk), 12345, dtype=torch.int32),
        "query_len": rows // len(lens),
    }


def selected(arguments: dict[str, Any], **values: Any) -> list[list[list[int]]]:
    """The ids of one launch, which agree with the reference."""
    heads, rows, _ = arguments["scores"].shape
    problem, config = setup(group_size=heads, query_len=arguments["query_len"], **values)
    spare = topk_inputs.workspace(OP.flags(problem, config), heads, rows, problem.topk, "cpu")
    wanted = topk_inputs.reference(problem, arguments)
    index.run(OP, problem, config, {**arguments, **spare})
    for name, expected in wanted.items():
        assert torch.equal(arguments[name].double(), expected), name
    assert not spare.get("arrivals", torch.zeros(1)).any(), "the next launch would find a counter that is not zero"
    return arguments["ids"].tolist()


@pytest.mark.parametrize("values", STRUCTURES)
def test_ids_of_a_longer_step_before_do_not_survive_a_shorter_one(values: dict[str, Any]) -> None:
    """https://github.com/vllm-project/vllm/pull/54604: step A has 16 blocks, step B 3."""
    arguments = inputs(torch.randn((1, 1, 16)), [16 * 128])
    assert sorted(selected(arguments, **values)[0][0]) == list(range(16))
    arguments["seq_lens"][0] = 3 * 128
    assert selected(arguments, **values)[0][0][3:] == [-1] * 13


@pytest.mark.parametrize("rows", [3, 4])
def test_token_major_lists_are_no_head_major_ones_even_when_rows_equal_heads(rows: int) -> None:
    """https://github.com/vllm-project/vllm/issues/48603: the layout is in the strides, never told by the shape."""
    scores = torch.randn((4, rows, 32))
    arguments = inputs(scores, [32 * 128] * rows)
    token_major = {
        **arguments,
        "scores": scores.transpose(0, 1).contiguous().transpose(0, 1),
        "ids": torch.full((rows, 4, 16), 12345, dtype=torch.int32).transpose(0, 1),
    }
    assert selected(arguments) == selected(token_major)


def test_more_blocks_than_scores_read_nothing_out_of_bounds() -> None:
    """https://github.com/sgl-project/sglang/issues/31133: a length past the buffer that a stale maximum sized."""
    store = torch.full((1, 1, 24), INF)
    store[..., :8] = torch.arange(8)
    arguments = inputs(store[..., :8], [8 * 128])
    problem, config = setup()
    index.run(OP, problem, config, arguments | {"seq_lens": torch.tensor([1300], dtype=torch.int32)})
    assert arguments["ids"][0, 0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0] + [-1] * 8


@pytest.mark.parametrize("values", STRUCTURES)
def test_a_request_of_length_zero_selects_nothing_and_ends(values: dict[str, Any]) -> None:
    """https://github.com/flashinfer-ai/flashinfer/issues/5015: length 0 less 1 taken as unsigned."""
    found = selected(inputs(torch.full((1, 3, 16), INF), [0, 129, 0]), **values)
    assert found[0] == [[-1] * 16, [0, 1] + [-1] * 14, [-1] * 16]


def test_rows_of_padding_select_nothing_beside_real_ones() -> None:
    """https://github.com/NVIDIA/TensorRT-LLM/pull/18034: pad tokens counted as requests."""
    found = selected(inputs(torch.randn((1, 32, 16)), [300] * 5 + [0] * 3))
    assert [row.count(-1) for row in found[0]] == [13] * 20 + [16] * 12


def test_padded_rows_of_a_speculative_batch_have_empty_page_tables() -> None:
    """https://github.com/vllm-project/vllm/pull/47984: 4 requests padded to 8 at query length 4."""
    arguments = inputs(torch.randn((1, 32, 16)), [300, 257, 129, 4] + [0] * 4) | table(8, 16, 32)
    selected(arguments)
    assert not arguments["page_table"][0, 16:].any()
    assert arguments["context_lens"][0, 16:].tolist() == [0] * 16
    assert arguments["context_lens"][0, :4].tolist() == [297, 298, 299, 300]  # each query row has its own


def test_ids_may_be_asked_for_in_ascending_order() -> None:
    """https://github.com/sgl-project/sglang/issues/30971: an attention that masks the last block of its list."""
    scores = torch.tensor([0.5, 0.1, 1e29]).reshape(1, 1, 3)
    assert selected(inputs(scores, [300]))[0][0][:4] == [2, 0, 1, -1]
    assert selected(inputs(scores, [300]) | {"ascending": True})[0][0][:4] == [0, 1, 2, -1]


def test_ascending_ids_are_the_same_selection() -> None:
    scores = torch.randn((1, 1, 40))
    by_score = selected(inputs(scores, [40 * 128]))[0][0]
    assert selected(inputs(scores, [40 * 128]) | {"ascending": True})[0][0] == sorted(by_score)


def test_offsets_into_the_scores_pass_two_to_the_thirty_first() -> None:
    """https://github.com/vllm-project/vllm/issues/47671: row times stride in 32 bits."""
    store = torch.empty((1, 3, (1 << 30) + 16))  # only what is touched is committed
    scores = store[:, :, :16]
    scores.copy_(torch.randn((1, 3, 16)))
    assert 2 * scores.stride(1) >= 1 << 31
    problem, config = setup()
    arguments = inputs(scores, [16 * 128] * 3)
    index.run(OP, problem, config, arguments)
    assert torch.equal(arguments["ids"].long(), scores.sort(dim=-1, descending=True).indices)


@pytest.mark.parametrize("values", STRUCTURES)
def test_an_infinitely_bad_block_neither_leaves_nor_takes_another_along(values: dict[str, Any]) -> None:
    """20 blocks, one of -inf: common selectors blend by multiplying, lose a finite block, leave -1 in mid-list."""
    scores = torch.arange(20.0).flip(0).reshape(1, 1, 20)
    scores[0, 0, 7] = -INF
    found = selected(inputs(scores, [20 * 128]), **values)[0][0]
    assert found == [b for b in range(17) if b != 7]
    few = selected(inputs(scores, [9 * 128]), **values)[0][0]
    assert few == [0, 1, 2, 3, 4, 5, 6, 8, 7] + [-1] * 7


@pytest.mark.parametrize("values", STRUCTURES)
def test_nan_ranks_last_and_drops_no_block(values: dict[str, Any]) -> None:
    """10 blocks, two of NaN: a selector whose padding weighs as much as NaN gives 9 ids."""
    scores = torch.tensor([3.0, NAN, 1.0, -INF, NAN, 2.0, 5.0, -1.0, 0.0, 4.0]).reshape(1, 1, 10)
    scores[0, 0, 4] = torch.tensor(-1).int().view(torch.float32)  # a NaN of negative sign
    found = selected(inputs(scores, [10 * 128]), **values)[0][0]
    assert found == [6, 9, 0, 5, 2, 8, 7, 3, 1, 4] + [-1] * 6


@pytest.mark.parametrize("values", STRUCTURES)
def test_equal_scores_go_to_the_lower_id_whatever_the_width_of_the_buffer(values: dict[str, Any]) -> None:
    """Ties that fall by the size of the captured graph, or to the higher id on another path."""
    for width in (40, 200):
        assert selected(inputs(torch.ones((1, 1, width)), [40 * 128]), **values)[0][0] == list(range(16))


def test_zeros_of_both_signs_are_one_score() -> None:
    scores = torch.tensor([-0.0, 0.0] * 10).reshape(1, 1, 20)
    assert selected(inputs(scores, [20 * 128]))[0][0] == list(range(16))


def test_eight_thousand_blocks_and_more() -> None:
    """A million tokens are 8192 blocks; nothing is packed into 16 bits."""
    scores = torch.randn((1, 1, 70_000)).sort().values.reshape(1, 1, -1)
    found = selected(inputs(scores, [70_000 * 128]), splits=4, merge="kernel", tile=2048)
    assert found[0][0] == list(range(69_999, 69_983, -1))


def table(requests: int, width: int, rows: int, topk: int = 16) -> dict[str, Any]:
    return {
        "block_table": torch.randperm(requests * width).int().reshape(requests, width),
        "page_table": torch.full((1, rows, topk * 8), 12345, dtype=torch.int32),
        "context_lens": torch.full((1, rows), 12345, dtype=torch.int32),
        "pages_per_block": 16,
    }


@pytest.mark.parametrize("kv_len", [0, 1, 15, 16, 17, 127, 128, 129, 241, 255, 256, 257, 4097])
@pytest.mark.parametrize("stride", [8, 16])
def test_the_page_table_has_the_newest_block_last_and_the_rest_in_order(kv_len: int, stride: int) -> None:
    """The lengths of vLLM's emission tests, at both strides; the newest block is forced: it comes first in ids."""
    width = max(1, -(-kv_len // 128))
    scores = torch.randn((1, 1, width))
    scores[0, 0, -1] = 1e29
    arguments = inputs(scores, [kv_len]) | table(1, width, 1) | {"pages_per_block": stride}
    ids = [block for block in selected(arguments)[0][0] if block >= 0]
    pages = arguments["page_table"][0, 0].reshape(16, 8)
    wanted = [int(arguments["block_table"][0, block]) * stride for block in [*ids[1:], *ids[:1]]]
    assert pages[: len(ids), 0].tolist() == wanted
    assert not pages[len(ids) :].any()
    tokens = (len(ids) - 1) * 128 + (kv_len - 1) % 128 + 1 if ids else 0
    assert int(arguments["context_lens"][0, 0]) == tokens


def test_without_the_newest_block_every_page_is_full() -> None:
    scores = torch.zeros((1, 1, 20))
    scores[0, 0, 19] = -1.0
    arguments = inputs(scores, [20 * 128 - 5]) | table(1, 20, 1)
    assert 19 not in selected(arguments)[0][0]
    assert int(arguments["context_lens"][0, 0]) == 16 * 128


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("scores", lambda t: t.double(), "scores is torch.float64, expected torch.float32"),
        ("scores", lambda t: t.repeat_interleave(2, -1)[..., ::2], "scores has last stride 2, expected 1"),
        ("seq_lens", lambda t: t.long(), "seq_lens is torch.int64"),
        ("seq_lens", lambda t: t.repeat(2), r"seq_lens has shape \[4\], expected \[2\]"),
        ("ids", lambda t: t[..., :8], r"ids has shape \[1, 2, 8\], expected \[1, 2, 16\]"),
        ("ids", lambda t: t.transpose(0, 1), r"ids has shape \[2, 1, 16\], expected \[1, 2, 16\]"),
        ("query_len", lambda _: 3, "query_len is 3, expected a divisor of the 2 rows"),
        ("block_table", lambda _: None, "block_table is missing, expected together with page_table"),
        ("context_lens", lambda _: None, "context_lens is missing"),
        ("page_table", lambda _: None, "block_table is given, expected together with page_table"),
        ("page_table", lambda t: t[..., :16], r"page_table has shape \[1, 2, 16\], expected \[1, 2, 128\]"),
        ("pages_per_block", lambda _: 4, "pages_per_block is 4, expected 8 or more"),
        ("partial_keys", lambda t: t.int(), "partial_keys is torch.int32, expected torch.int64"),
        ("arrivals", lambda t: t[..., :1], "arrivals has 1 .* elements, expected 2"),
    ],
)
def test_a_wrong_argument_is_named_before_any_launch(name: str, spoil: Any, message: str) -> None:
    problem, config = setup(splits=2, merge="last")
    arguments = inputs(torch.randn((1, 2, 16)), [300, 20]) | table(2, 16, 2)
    arguments |= topk_inputs.workspace(OP.flags(problem, config), 1, 2, 16, "cpu")
    with pytest.raises(ValueError, match=message):
        load_module(render(OP, problem, config)).index_topk(**{**arguments, name: spoil(arguments[name])})
    assert (arguments["ids"] == 12345).all()
