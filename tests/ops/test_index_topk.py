from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.topk_exact import oracle
from m3gen import ops
from m3gen.codegen import render
from m3gen.evaluate.gate import verify
from m3gen.ops import Cache, topk_inputs
from m3gen.space import Config
from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3, ROW_BUCKETS, Problem, Status
from m3gen.targets import default_device
from tests.ops import index
from tests.problems import ARCHS

OP = ops.get("index_topk")
INSERT: dict[str, Any] = {"select": "insert", "tile": 64, "num_warps": 1}


def setup(**values: Any) -> tuple[Problem, Config]:
    fields = {name: values.pop(name) for name in ("group_size", "query_len", "topk") if name in values}
    problem, device = index.problem("index_topk", dtypes=("fp32", "fp32"), rows=4, **fields)
    return problem, index.config(OP, problem, device, **{**INSERT, "splits": 1, **values})


@pytest.mark.parametrize("arch", ARCHS)
def test_the_fields_default_is_in_the_space_of_every_problem(arch: str) -> None:
    for rows in ROW_BUCKETS:
        for context in CONTEXT_BUCKETS:
            for topk in (6, 16, 64):
                problem, device = index.problem(
                    "index_topk", arch, ("fp32",) * 2, rows=rows, context=context, topk=topk
                )
                assert OP.default(problem, device) in OP.space(problem, device)


def test_the_default_is_one_launch_with_few_waves() -> None:
    def default(arch: str, **load: Any) -> tuple[Any, ...]:
        problem, device = index.problem("index_topk", arch, ("fp32",) * 2, **load)
        found = OP.default(problem, device)
        return found["tile"], found["splits"], found.get("merge"), found["num_warps"]

    assert default("sm_90", rows=64, context=131072) == (256, 4, "last", 4)
    assert default("sm_90", rows=256, context=131072) == (512, 2, "last", 4)
    assert default("gfx942", rows=4, context=8192) == (64, 1, None, 1)
    assert default("gfx942", rows=4, context=16384) == (128, 1, None, 2)
    assert default("gfx942", rows=4, context=131072) == (128, 8, "last", 2)
    assert default("gfx950", rows=256, context=131072) == (1024, 1, None, 8)


def test_the_cache_makes_no_difference() -> None:
    device = default_device("gfx942")
    found = {OP.problem(device, MINIMAX_M3.shard(4), Cache(kv), 1) for kv in ("bf16", "e4m3fnuz")}
    assert len(found) == 1


@pytest.mark.parametrize(("context", "splits", "idle"), [(9472, 16, 15 / 16), (9472, 1, 0), (1 << 17, 4, 1 / 2)])
def test_programs_without_a_tile_are_idle(context: int, splits: int, idle: float) -> None:
    """All were predicted to sort and merge: sixteen parts of 74 blocks took eight times as long as one."""
    problem = OP.problem(default_device("gfx950"), MINIMAX_M3.shard(4), Cache("bf16"), 1)
    assert problem is not None
    values = {"select": "sort", "tile": 512, "splits": splits, "merge": "last", "num_warps": 4, "num_stages": 1}
    (work,) = OP.work(problem.with_load(64, context), Config(values))
    assert work.idle == idle


def test_work_counts_partial_lists_twice() -> None:
    problem, device = index.problem("index_topk", dtypes=("fp32",) * 2, rows=4, context=131072)
    config = index.config(OP, problem, device, splits=2, merge="kernel", tile=256, num_warps=4)
    select, merge = OP.work(problem, config)
    assert select.written_bytes == merge.read_bytes == 4 * 2 * 16 * 8
    assert merge.written_bytes == 4 * 16 * 4
    assert select.loop_trips == 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("-inf")])), max_size=40
    ),
    st.integers(1, 20),
)
def test_the_reference_is_the_total_order(scores: list[float], topk: int) -> None:
    """Against two stable sorts in torch; and by the definition: no block left out is before one that is in."""
    problem, _ = index.problem("index_topk", dtypes=("fp32", "fp32"), topk=topk)
    row = torch.tensor([[*scores, 9.0]])
    arguments = {
        "scores": row[None],
        "seq_lens": torch.tensor([len(scores) * 128], dtype=torch.int32),
        "ids": torch.zeros((1, 1, topk), dtype=torch.int32),
    }
    found = topk_inputs.reference(problem, arguments)["ids"][0].int()
    assert torch.equal(found, oracle(row, torch.tensor([len(scores)]), topk))
    chosen = [int(block) for block in found[0] if block >= 0]
    assert len(chosen) == min(topk, len(scores))
    numbers = [s for s in scores if s == s]
    best = sorted(numbers, reverse=True)[:topk]
    assert [scores[b] for b in chosen][: len(best)] == best


def test_the_cases_hold_what_hurts() -> None:
    problem, config = setup(group_size=4, query_len=2)
    found = {case.name: case for case in OP.cases(problem, config, 0)}
    scores = torch.cat([case.arguments["scores"].flatten() for case in found.values()])
    assert scores.isnan().any()
    assert (scores == float("-inf")).any()
    assert (scores.view(torch.int32) == -(1 << 31)).any(), "no minus zero"
    for case in found.values():
        assert not case.arguments["scores"].is_contiguous()
        assert not case.arguments["ids"].is_contiguous()
    counts = {int(n) for c in found.values() for n in (c.arguments["seq_lens"] + 127) // 128}
    assert {0, 1, 2, 15, 16, 17, 20, 63, 64, 65} <= counts
    assert set(found["page table"].outputs) == {"ids", "page_table", "context_lens"}


@pytest.mark.parametrize(
    "values",
    [
        {"splits": 1},
        {"splits": 4, "merge": "kernel"},
        {"splits": 4, "merge": "last"},
        {"splits": 2, "merge": "kernel", "topk": 6, "tile": 128},
    ],
    ids=lambda values: "-".join(map(str, values.values())),
)
def test_every_structure_passes_the_gate_by_insertion(values: dict[str, Any]) -> None:
    problem, config = setup(group_size=2, query_len=2, **values)
    verdict = verify(OP, problem, config, render(OP, problem, config), seeds=(0, 1))
    assert verdict.status is Status.OK, verdict.reason


@pytest.mark.parametrize("values", [{"splits": 1}, {"splits": 2, "merge": "last"}])
@pytest.mark.parametrize("name", ["tile edges", "peers"])
def test_sorting_networks_find_the_same(values: dict[str, Any], name: str) -> None:
    problem, config = setup(select="sort", **values)
    case = index.case("index_topk", problem, config, name)
    wanted = OP.reference(case)
    index.run(OP, problem, config, case.arguments)
    for output in case.outputs:
        assert torch.equal(case.arguments[output].double(), wanted[output])


@pytest.mark.parametrize("splits", [1, 4])
def test_hundreds_of_random_rows_are_exact(splits: int) -> None:
    """`benchmarks/topk_exact.py` runs ten thousand and every structure."""
    from benchmarks.topk_exact import count_wrong

    values = {"select": "insert", "splits": splits, **({"merge": "last"} if splits > 1 else {})}
    assert count_wrong(values, 200 if splits > 1 else 400, seed=splits) == 0
