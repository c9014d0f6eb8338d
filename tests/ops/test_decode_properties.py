"""Both decode attentions over the space of their inputs and structures, on shapes small enough to interpret."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.ops import decode

PAGE = decode.PAGE
OPS = ("dense_decode", "sparse_decode")

edges = st.sampled_from([0, 1, 2, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE - 1, 2 * PAGE, 2 * PAGE + 1, 5 * PAGE + 3])
bounded = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def problems(draw: st.DrawFn, op: str) -> dict[str, Any]:
    """A problem, a structure and lengths, of at most 6 rows."""
    query_len = draw(st.sampled_from([1, 1, 2, 3, 4]))
    pack = draw(st.sampled_from([n for n in range(1, query_len + 1) if query_len % n == 0]))
    problem = decode.tiny(
        op,
        query_len=query_len,
        head_dim=draw(st.sampled_from([16, 32])),
        topk=draw(st.integers(2, 4)),
        group_size=draw(st.sampled_from([1, 2, 3, 4, 6, 8, 16, 24])),
        kv_heads=draw(st.sampled_from([1, 2])),
    )
    structure = {
        "splits": draw(st.sampled_from([n for n in (1, 2, 4) if op == "dense_decode" or n <= problem.topk])),
        "heads_in": draw(st.sampled_from(["m", "n"])),
        "loads": draw(st.sampled_from(["together", "apart"])),
        "masked_loads": draw(st.booleans()),
    }
    if structure["heads_in"] == "n":
        structure["values_as"] = draw(st.sampled_from(["rows", "columns"]))
    if op == "sparse_decode" and pack == 1 and problem.topk % structure["splits"] == 0:
        structure["first_tile"] = draw(st.sampled_from(["loop", "apart"]))
    if query_len > 1:
        structure["rows_packed"] = pack
    if structure["splits"] > 1:
        structure["merge"] = draw(st.sampled_from(["kernel", "last"]))
    chosen = decode.config(**structure)
    arguments = decode.inputs(
        problem,
        chosen,
        draw(st.lists(edges, min_size=1, max_size=max(1, 6 // query_len))),
        seed=draw(st.integers(0, 999)),
        hostile=draw(st.booleans()),
        heads_first=draw(st.booleans()),
        interleaved=draw(st.booleans()),
        padded_rows=draw(st.booleans()),
    )
    return {"problem": problem, "chosen": chosen, "arguments": arguments}


@pytest.mark.parametrize("op", OPS)
@bounded
@given(data=st.data())
def test_every_structure_is_the_reference_on_every_input(op: str, data: st.DataObject) -> None:
    decode.check(**data.draw(problems(op)))


@settings(bounded, max_examples=15)
@given(data=st.data())
def test_sentinels_may_stand_anywhere_in_a_list(data: st.DataObject) -> None:
    drawn = data.draw(problems("sparse_decode"))
    problem, arguments = drawn["problem"], drawn["arguments"]
    entries = st.sampled_from([-1, -(2**31), 2**31 - 1, 2**27, 0, 1, 2, 3, 5, 6])
    for row in arguments["topk_ids"].flatten(0, 1):
        ids = data.draw(st.lists(entries, min_size=problem.topk, max_size=problem.topk))
        seen = [block for i, block in enumerate(ids) if block in ids[:i] and block >= 0]
        assume(not seen)  # distinct within a row
        row.copy_(torch.tensor(ids, dtype=torch.int32))
    decode.check(**drawn)


@pytest.mark.parametrize("op", OPS)
@settings(bounded, max_examples=15)
@given(data=st.data())
def test_strides_and_alignment_change_nothing(op: str, data: st.DataObject) -> None:
    """q, out and the tables sliced out of wider ones at odd places, bit for bit the same answer."""
    drawn = data.draw(problems(op))
    problem, arguments = drawn["problem"], drawn["arguments"]
    plain = decode.run(**drawn)
    before, after = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    lead = data.draw(st.integers(0, 5))  # elements, so that no row starts at a multiple of 16 bytes
    moved = dict(arguments)
    for name in ("q", "out"):
        rows, heads, width = arguments[name].shape
        wide = torch.full((before + rows + after, (heads + 1) * width + lead), 7.0)
        moved[name] = wide[before : before + rows, lead : lead + heads * width].unflatten(1, (heads, width))
        moved[name].copy_(arguments[name])
    for name in ("block_table", "seq_lens", "topk_ids")[: 3 if op == "sparse_decode" else 2]:
        old = arguments[name]
        wide = torch.full((*old.shape[:-1], before + old.shape[-1] + after), -1, dtype=torch.int32)
        moved[name] = wide[..., before : before + old.shape[-1]]
        moved[name].copy_(old)
    assert torch.equal(decode.run(problem, drawn["chosen"], moved), plain)


@settings(bounded, max_examples=15)
@given(data=st.data())
def test_the_order_of_a_list_and_of_the_pages_does_not_matter(data: st.DataObject) -> None:
    drawn = data.draw(problems("sparse_decode"))
    arguments = drawn["arguments"]
    first = decode.check(**drawn)
    order = data.draw(st.permutations(range(drawn["problem"].topk)))
    turned = {**arguments, "topk_ids": arguments["topk_ids"][..., list(order)].contiguous()}
    pages = arguments["k_cache"].shape[0]
    where = torch.tensor(data.draw(st.permutations(range(pages))), dtype=torch.int32)
    for name in ("k_cache", "v_cache"):
        turned[name] = torch.empty_like(arguments[name])
        turned[name][where.long()] = arguments[name]
    table = arguments["block_table"]
    turned["block_table"] = torch.where(table >= 0, where[table.clamp(min=0).long()], table)
    second = decode.run(drawn["problem"], drawn["chosen"], turned)
    assert torch.allclose(first, second, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_reference_is_attention_written_out(data: st.DataObject) -> None:
    """Another formula: a double loop over positions, exp and sums in plain Python floats, no softmax."""
    drawn = data.draw(problems(data.draw(st.sampled_from(OPS))))
    problem, arguments = drawn["problem"], drawn["arguments"]
    wanted = decode.expected(problem, arguments)
    row = data.draw(st.integers(0, wanted.shape[0] - 1))
    head = data.draw(st.integers(0, problem.q_heads - 1))
    request, kv_head = row // problem.query_len, head // problem.group_size
    last = int(arguments["seq_lens"][request]) - problem.query_len + row % problem.query_len
    total, summed = 0.0, torch.zeros(problem.head_dim, dtype=torch.float64)
    for position in range(last + 1):
        block, offset = divmod(position, PAGE)
        listed = "topk_ids" not in arguments or block in arguments["topk_ids"][kv_head, row].tolist()
        if not listed or (page := int(arguments["block_table"][request, block])) < 0:
            continue
        key, value = (arguments[f"{side}_cache"][page, kv_head, offset].double() for side in "kv")
        weight = torch.exp((arguments["q"][row, head].double() * key).sum() * problem.head_dim**-0.5)
        total += float(weight)
        summed += weight * value
    assert torch.allclose(wanted[row, head], summed / total if total else summed, atol=1e-12)
