"""What other indexers got wrong in service, one test a fault, each with the right answer of the reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.ops import select_inputs
from tests.ops import index
from tests.ops.test_index_select import BEST, DIM, FUSED, INF, NAN, PAGE, STRUCTURES, inputs, selected, setup

OP = ops.get("index_select")
# One of each form.
FORMS = [STRUCTURES[2], *FUSED[:2]]
every_structure = pytest.mark.parametrize("values", STRUCTURES, ids=lambda v: "-".join(map(str, v.values())))
every_form = pytest.mark.parametrize("values", FORMS, ids=lambda v: v["form"])


def scoring(best: list[float], **given: Any) -> dict[str, Any]:
    """One query of ones; the blocks of one sequence score what `best` says."""
    arguments = inputs([len(best) * PAGE], local_blocks=0, **given)
    arguments["q"].fill_(1.0)
    arguments["k_cache"].zero_()
    for block, score in enumerate(best):
        arguments["k_cache"][arguments["block_table"][0, block], :, 3] = score
    return arguments


def table(rows: int) -> dict[str, Any]:
    return {
        "page_table": torch.full((1, rows, BEST * PAGE // 16), 12345, dtype=torch.int32),
        "context_lens": torch.full((1, rows), 12345, dtype=torch.int32),
        "pages_per_block": 8,
    }


@every_structure
def test_ids_of_a_longer_step_before_do_not_survive_a_shorter_one(values: dict[str, Any]) -> None:
    """https://github.com/vllm-project/vllm/pull/54604: step A fills the list, step B has two blocks."""
    arguments = inputs([BEST * PAGE])
    assert sorted(selected(arguments, **values)[0][0]) == list(range(BEST))
    arguments["seq_lens"][0] = 2 * PAGE
    assert selected(arguments, **values)[0][0][2:] == [-1] * (BEST - 2)


@every_form
def test_token_major_lists_are_no_head_major_ones_even_when_rows_equal_heads(values: dict[str, Any]) -> None:
    """https://github.com/vllm-project/vllm/issues/48603: the layout is in the strides, never told by the shape."""
    rows = 4
    arguments = inputs([5 * PAGE] * rows, heads=4)
    token_major = arguments | {
        "scores": torch.full((rows, 4, 5), NAN).transpose(0, 1),
        "ids": torch.full((rows, 4, BEST), 12345, dtype=torch.int32).transpose(0, 1),
    }
    assert selected(arguments, **values) == selected(token_major, **values)


@every_structure
def test_a_length_past_the_table_reads_and_lists_nothing_out_of_bounds(values: dict[str, Any]) -> None:
    """https://github.com/sgl-project/sglang/issues/31133: a length that a stale maximum does not cover. A row sees
    the blocks of the table, whatever the width of the scores."""
    arguments = scoring([3.0, 1.0, 2.0], init_blocks=0)
    arguments |= {"scores": torch.full((1, 1, 16), NAN)}
    problem, config = setup(**values)
    arguments |= select_inputs.workspace(OP.flags(problem, config), 1, 1, BEST, "cpu")
    index.run(OP, problem, config, arguments | {"seq_lens": torch.tensor([1300], dtype=torch.int32)})
    assert arguments["ids"][0, 0].tolist() == [0, 2, 1, -1]


@every_structure
def test_a_request_of_length_zero_selects_nothing_and_ends(values: dict[str, Any]) -> None:
    """https://github.com/flashinfer-ai/flashinfer/issues/5015: length 0 less 1 taken as unsigned."""
    found = selected(inputs([0, PAGE + 1, 0]), **values)
    assert found[0] == [[-1] * BEST, [1, 0, -1, -1], [-1] * BEST]


@every_form
def test_padded_rows_of_a_speculative_batch_select_nothing_and_have_empty_page_tables(
    values: dict[str, Any],
) -> None:
    """https://github.com/vllm-project/vllm/pull/47984: requests padded at query length 4."""
    arguments = inputs([3 * PAGE, PAGE + 1, 4, 0, 0], query_len=4) | table(20)
    arguments["block_table"][3:] = 0  # the null block
    found = selected(arguments, **values)
    assert found[0][12:] == [[-1] * BEST] * 8
    assert not arguments["page_table"][0, 12:].any()
    assert arguments["context_lens"][0, 8:].tolist() == [1, 2, 3, 4, *[0] * 8]  # each query row has its own


@every_form
def test_query_rows_before_the_sequence_began_select_nothing(values: dict[str, Any]) -> None:
    """https://github.com/vllm-project/vllm/issues/49054: query length 3 on one token, rows 0 and 1 are empty."""
    found = selected(inputs([1, PAGE + 1], query_len=3), **values)
    assert found[0][:3] == [[-1] * BEST, [-1] * BEST, [0, -1, -1, -1]]
    # The newest block is forced, and it is each row's own: the last row alone sees block 1.
    assert found[0][3:] == [[0, -1, -1, -1], [0, -1, -1, -1], [1, 0, -1, -1]]


@every_structure
def test_an_infinitely_bad_block_neither_leaves_nor_takes_another_along(values: dict[str, Any]) -> None:
    """One block of -inf keys: common selectors blend by multiplying, lose a finite block, leave -1 in mid-list."""
    assert selected(scoring([5.0, 4.0, -INF, 3.0, 2.0, 1.0]), **values)[0][0] == [0, 1, 3, 4]
    assert selected(scoring([5.0, -INF, 3.0]), **values)[0][0] == [0, 2, 1, -1]


@every_structure
def test_nan_ranks_last_and_drops_no_block(values: dict[str, Any]) -> None:
    """A selector whose padding weighs as much as NaN gives one id too few."""
    assert selected(scoring([NAN, -INF, 1.0, NAN]), **values)[0][0] == [2, 1, 0, 3]
    assert selected(scoring([NAN, 2.0, NAN]), **values)[0][0] == [1, 0, 2, -1]


@every_structure
def test_equal_scores_go_to_the_lower_id_in_every_form(values: dict[str, Any]) -> None:
    """Ties that fall to the lower id on one path and to the higher on another: the output depends on the path."""
    assert selected(scoring([1.0] * 9), **values)[0][0] == list(range(BEST))
    assert selected(scoring([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]), **values)[0][0] == [1, 2, 4, 5]


@every_structure
def test_forced_blocks_come_first_and_a_local_one_counts_as_local(values: dict[str, Any]) -> None:
    arguments = scoring([9.0, 8.0, 0.0, 7.0, 6.0, 5.0, 0.0]) | {"init_blocks": 3, "local_blocks": 1}
    assert selected(arguments, **values)[0][0] == [0, 1, 2, 6]
    both = scoring([1.0, 1.0, 1.0]) | {"init_blocks": 2, "local_blocks": 2}
    assert selected(both, **values)[0][0] == [0, 1, 2, -1]


@every_form
def test_garbage_past_the_end_of_a_page_never_moves_a_block(values: dict[str, Any]) -> None:
    """https://github.com/vllm-project/vllm-ascend/issues/13391: what lies past the tail drifts the output."""
    arguments = scoring([1.0, 2.0, 3.0, 4.0, 5.0])
    arguments["seq_lens"][0] -= PAGE - 1
    tail = arguments["block_table"][0, 4]
    for garbage in (NAN, 100.0):
        arguments["k_cache"][tail, 1:] = garbage
        assert selected(arguments, **values)[0][0] == [4, 3, 2, 1]


@every_form
def test_page_offsets_pass_two_to_the_thirty_first(values: dict[str, Any]) -> None:
    """https://github.com/vllm-project/vllm/issues/47671: page times stride in 32 bits."""
    problem, config = setup(**values)
    case = index.case("index_select", problem, config, "page offset past 2^31")
    assert int(case.arguments["block_table"].min()) * PAGE * DIM >= 1 << 31
    index.run(OP, problem, config, case.arguments)
    assert torch.equal(case.arguments["ids"].double(), OP.reference(case)["ids"])


@every_form
def test_ascending_ids_are_the_same_selection(values: dict[str, Any]) -> None:
    """https://github.com/sgl-project/sglang/issues/30971: an attention that masks the last block of its list."""
    by_score = selected(inputs([7 * PAGE]), **values)[0][0]
    assert by_score != sorted(by_score)
    assert selected(inputs([7 * PAGE], ascending=True), **values)[0][0] == sorted(by_score)


@every_form
def test_the_page_table_has_the_newest_block_last_and_the_rest_in_order(values: dict[str, Any]) -> None:
    arguments = scoring([1.0, 3.0, 2.0, 4.0, 5.0]) | table(1) | {"local_blocks": 1}
    arguments["seq_lens"][0] -= 5
    assert selected(arguments, **values)[0][0] == [4, 3, 1, 2]  # the newest is forced
    first = arguments["page_table"][0, 0].reshape(BEST, PAGE // 16)[:, 0].tolist()
    assert first == [int(arguments["block_table"][0, block]) * 8 for block in (3, 1, 2, 4)]
    assert int(arguments["context_lens"][0, 0]) == BEST * PAGE - 5


@pytest.mark.parametrize("values", [STRUCTURES[2], *FUSED], ids=lambda v: f"{v['form']}-{v['splits']}")
def test_one_workspace_serves_launches_of_every_shape_in_turn(values: dict[str, Any]) -> None:
    """A counter that a launch leaves over, or lists of a larger step, would be the next launch's first arrivals."""
    problem, config = setup(4, **values)
    spare = select_inputs.workspace(OP.flags(problem, config), 4, 12, BEST, "cpu")
    for heads, query_len, lens in ((4, 3, [5 * PAGE, 0, 1]), (1, 1, [7 * PAGE]), (2, 2, [PAGE + 1, 9 * PAGE])):
        arguments = inputs(lens, query_len, heads, seed=heads)
        selected({**spare, **arguments}, **values)
        assert not spare["arrivals"].any()


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("q", lambda t: t.float(), "q is torch.float32, expected torch.bfloat16"),
        ("k_cache", lambda t: t[:, :16], r"k_cache has shape \[3, 16, 16\], expected \[any, 32, 16\]"),
        ("block_table", lambda t: t.long(), "block_table is torch.int64"),
        ("seq_lens", lambda t: t.repeat(2), r"seq_lens has shape \[2\], expected \[1\]"),
        ("scores", lambda t: t[..., :2], "scores has 2 blocks, expected the 3 of block_table or more"),
        ("scores", lambda t: t.double(), "scores is torch.float64"),
        ("ids", lambda t: t.repeat(2, 1, 1), r"ids has shape \[2, 1, 4\], expected \[1, 1, 4\]"),
        ("ids", lambda t: t.long(), "ids is torch.int64, expected torch.int32"),
        ("query_len", lambda _: 2, "query_len is 2, expected a divisor of the 1 rows of q"),
        ("init_blocks", lambda _: -1, "init_blocks is -1"),
        ("local_blocks", lambda _: -1, "local_blocks is -1"),
        ("context_lens", lambda _: None, "context_lens is missing, expected together with page_table"),
        ("page_table", lambda _: None, "context_lens is given, expected together with page_table"),
        ("page_table", lambda t: t[..., :4], r"page_table has shape \[1, 1, 4\], expected \[1, 1, 8\]"),
        ("pages_per_block", lambda _: 1, "pages_per_block is 1, expected 2 or more"),
        ("partial_keys", lambda t: t[..., :2], "partial_keys has .* elements, expected 8 contiguous or more"),
        ("arrivals", lambda t: t.long(), "arrivals is torch.int64, expected torch.int32"),
    ],
)
@pytest.mark.parametrize("values", [STRUCTURES[2], STRUCTURES[4]], ids=lambda v: v["form"])
def test_a_wrong_argument_is_named_before_any_launch(
    name: str, spoil: Any, message: str, values: dict[str, Any]
) -> None:
    problem, config = setup(**values)
    arguments = inputs([3 * PAGE]) | table(1)
    arguments |= select_inputs.workspace(OP.flags(problem, config), 1, 1, BEST, "cpu")
    with pytest.raises(ValueError, match=message):
        load_module(render(OP, problem, config)).index_select(**{**arguments, name: spoil(arguments[name])})
    assert (arguments["ids"] == 12345).all()
