from __future__ import annotations

import ast
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.topk_exact import oracle
from m3gen import ops
from m3gen.codegen import render
from m3gen.evaluate.gate import verify
from m3gen.ops import Cache, select_inputs
from m3gen.space import Config
from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3, ROW_BUCKETS, Problem, Status
from m3gen.targets import default_device
from tests.ops import index
from tests.ops.test_index_score import by_one_big_product
from tests.problems import ARCHS

OP, SCORE, TOPK = (ops.get(name) for name in ("index_select", "index_score", "index_topk"))
PAGE, DIM, BEST = 32, 16, 4
INF, NAN = float("inf"), float("nan")

# One of every structure; a program of the last one sees more blocks than it keeps.
STRUCTURES: list[dict[str, Any]] = [
    {"form": "apart", "splits": 2, "select_splits": 1},
    {"form": "apart", "splits": 2, "select_splits": 2, "merge": "kernel"},
    {"form": "apart", "splits": 2, "select_splits": 2, "merge": "last"},
    {"form": "scores", "splits": 2},
    {"form": "lists", "splits": 2},
    {"form": "lists", "splits": 1},
]
FUSED = [values for values in STRUCTURES if values["form"] != "apart"]


def setup(group_size: int = 1, query_len: int = 1, **values: Any) -> tuple[Problem, Config]:
    """Pages of 32 tokens and lists of 4, which the interpreter gets through quickly."""
    shape = {"head_dim": DIM, "page_size": PAGE, "topk": BEST, "group_size": group_size, "query_len": query_len}
    problem, device = index.problem("index_select", rows=4, **shape)
    quick = {"scorer": "matrix", "heads_in": "m", "select": "insert", "tile": 128, "tile_n": PAGE}
    quick |= {"num_warps": 1, "select_warps": 1, "select_splits": 1}
    return problem, index.config(OP, problem, device, **{**quick, **values})


def inputs(lens: list[int], query_len: int = 1, heads: int = 1, seed: int = 0, **given: Any) -> dict[str, Any]:
    """Small whole numbers, so that scores are exact; a page per block of every request."""
    generator = torch.Generator().manual_seed(seed)
    rows, blocks = len(lens) * query_len, max(1, *(-(-length // PAGE) for length in lens))

    def whole(*shape: int) -> torch.Tensor:
        return torch.randint(-2, 3, shape, generator=generator).bfloat16()

    return {
        "q": whole(rows, heads, DIM),
        "k_cache": whole(blocks * len(lens), PAGE, DIM),
        "block_table": torch.randperm(blocks * len(lens), generator=generator).int().reshape(len(lens), blocks),
        "seq_lens": torch.tensor(lens, dtype=torch.int32),
        "scores": torch.full((heads, rows, blocks + 1), NAN),
        "ids": torch.full((heads, rows, BEST), 12345, dtype=torch.int32),
        "query_len": query_len,
        "init_blocks": 0,
        "local_blocks": 1,
        **given,
    }


def selected(arguments: dict[str, Any], **values: Any) -> list[list[list[int]]]:
    """The ids of one launch, which agree with the reference, as do the page tables where asked for."""
    _, heads, _ = arguments["q"].shape
    problem, config = setup(heads, arguments["query_len"], **values)
    spare = select_inputs.workspace(OP.flags(problem, config), heads, len(arguments["q"]), BEST, "cpu")
    wanted = select_inputs.reference(problem, arguments)
    index.run(OP, problem, config, {**spare, **arguments})
    for name, expected in wanted.items():
        assert torch.equal(arguments[name].double(), expected), name
    assert not spare.get("arrivals", torch.zeros(1)).any(), "the next launch would find a counter that is not zero"
    return arguments["ids"].tolist()


@pytest.mark.parametrize("arch", ARCHS)
def test_the_fields_default_is_apart_and_in_the_space_of_every_problem(arch: str) -> None:
    for dtypes in index.DTYPES[:4]:
        for heads, query_len, topk in ((1, 1, 16), (4, 1, 6), (2, 3, 64)):
            shape = {"group_size": heads, "query_len": query_len, "topk": topk}
            problem, device = index.problem("index_select", arch, dtypes, **shape)
            space = OP.space(problem, device)
            for rows in ROW_BUCKETS[::3]:
                for context in CONTEXT_BUCKETS[::4]:
                    default = OP.default(problem.with_load(rows, context), device)
                    assert space.canonical(default) == default
                    assert not space.violations(default)
                    assert default["form"] == "apart"


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "sm_90"])
@pytest.mark.parametrize("context", [16384, 131072])
def test_the_default_is_those_of_scorer_and_selector(arch: str, context: int) -> None:
    problem, device = index.problem("index_select", arch, rows=16, context=context)
    flags = OP.flags(problem, OP.default(problem, device))
    scorer = SCORE.flags(problem, SCORE.default(problem, device))
    selector = TOPK.flags(problem, TOPK.default(problem, device))
    for name, value in scorer.items():
        assert flags[name] == value or name == "OPTIONS", name
    for name in ("SELECT", "TILE", "MERGE", *(["MERGE_WARPS"] if selector["MERGE"] == "kernel" else [])):
        assert flags[name] == selector[name], name
    assert flags["SELECT_SPLITS"] == selector["SPLITS"]
    # What is left out stands at Triton's own default.
    left_out = {("waves_per_eu", 0), ("enable_fp_fusion", True)}
    assert set(scorer["OPTIONS"]) - set(flags["OPTIONS"]) <= left_out
    assert set(selector["OPTIONS"]) - set(flags["SELECT_OPTIONS"]) <= left_out


@pytest.mark.parametrize("merge", ["none", "kernel", "last"])
def test_apart_the_kernels_are_word_for_word_those_of_the_two_ops(merge: str) -> None:
    """What is tuned or fixed in one of them is so here."""
    problem, device = index.problem("index_select", group_size=2, query_len=3, rows=4)
    merged = {} if merge == "none" else {"merge": merge}
    splits = 1 if merge == "none" else 4
    score = index.config(SCORE, problem, device, splits=32, heads_in="n")
    topk = index.config(TOPK, problem, device, splits=splits, **merged)
    both = index.config(OP, problem, device, splits=32, heads_in="n", select_splits=splits, **merged)
    ours = functions(render(OP, problem, both).text)
    theirs = functions(render(SCORE, problem, score).text) | functions(render(TOPK, problem, topk).text)
    for name in ("index_score", "index_topk", "workspace"):
        del theirs[name]
    assert {"score_blocks", "select_blocks"} <= theirs.keys()
    assert all(ours[name] == text for name, text in theirs.items())


def functions(text: str) -> dict[str, str]:
    """Every function of a module by name, decorators and comments included."""
    lines, found = text.splitlines(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def test_the_launcher_takes_the_same_arguments_in_every_structure() -> None:
    """An engine binds it once; only what `workspace` names comes on top."""
    seen = set()
    for values in STRUCTURES:
        problem, config = setup(**values)
        module = ast.parse(render(OP, problem, config).text)
        launcher = next(n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "index_select")
        names = [argument.arg for argument in (*launcher.args.args, *launcher.args.kwonlyargs)]
        buffers = select_inputs.workspace(OP.flags(problem, config), 1, 1, BEST, "meta")
        assert set(buffers) <= set(names)
        seen.add(tuple(name for name in names if name not in buffers))
    assert len(seen) == 1


def test_the_problem_of_a_rank_is_that_of_the_scorer() -> None:
    device = default_device("gfx950")
    for cache in (Cache("bf16"), Cache("e4m3fn", "scalar")):
        found, scored = (op.problem(device, MINIMAX_M3.shard(1), cache, 2) for op in (OP, SCORE))
        assert found is not None
        assert scored is not None
        assert found.op == "index_select"
        assert found.with_load(4, 1024).to_dict() | {"op": ""} == scored.with_load(4, 1024).to_dict() | {"op": ""}


def test_work_is_that_of_the_launches_and_of_what_they_hand_on() -> None:
    problem, device = index.problem("index_select", rows=16, context=131072)

    def work(**values: Any) -> tuple[ops.Work, ...]:
        return OP.work(problem, index.config(OP, problem, device, splits=64, **values))

    apart = work(form="apart", select_splits=4, merge="kernel", tile=512)
    assert [one.kernel for one in apart] == ["score_blocks", "select_blocks", "merge_lists"]
    (scores,), (lists,) = work(form="scores", tile=512), work(form="lists", select="insert")
    assert {scores.kernel, lists.kernel} == {"score_and_select"}
    assert scores.streamed_bytes == lists.streamed_bytes == apart[0].streamed_bytes
    ids = 16 * 16 * 4
    assert scores.written_bytes - ids == scores.read_bytes - apart[0].read_bytes == 16 * 1024 * 4
    assert lists.written_bytes - ids == lists.read_bytes - apart[0].read_bytes == 16 * 64 * 16 * 8
    assert [one.loop_trips - apart[0].loop_trips for one in (scores, lists)] == [1 + 2, 1 + 1]


def test_work_counts_the_lists_that_one_program_selects_one_after_the_other() -> None:
    problem, device = index.problem("index_select", group_size=4, query_len=4, rows=4, context=8192)

    def trips(**values: Any) -> float:
        config = index.config(OP, problem, device, form="lists", splits=64, select="insert", **values)
        return OP.work(problem, config)[0].loop_trips

    assert trips(heads="together", rows_packed=4) - trips(heads="apart", rows_packed=1) == 15


def test_the_cases_hold_what_hurts() -> None:
    problem, config = setup(2, query_len=2, form="scores")
    found = {case.name: case for case in OP.cases(problem, config, 0)}
    assert {case.tolerances for case in found.values()} == {"awkward", "peers"}
    lengths = found["lengths"].arguments
    assert {0, 1, PAGE - 1, PAGE, PAGE + 1, BEST * PAGE + 1} <= set(lengths["seq_lens"].tolist())
    assert lengths["k_cache"][0].isnan().all(), "page 0 is never real"
    assert not lengths["ids"].is_contiguous()
    copies = select_inputs.index_inputs.reference(problem, found["copies of keys"].arguments)
    assert len(copies[0, 0].unique()) <= 4
    spoiled = select_inputs.index_inputs.reference(problem, found["nan and infinities in the data"].arguments)
    assert spoiled.isnan().any(-1)[0].all()
    far = found["page offset past 2^31"].arguments
    assert int(far["block_table"].max()) * far["k_cache"].stride(0) >= 1 << 31
    assert found["one block too many"].arguments["block_table"].shape[1] == 129
    assert set(found["page table"].outputs) == {"ids", "page_table", "context_lens"}


@pytest.mark.parametrize("seed", range(4))
def test_random_cases_have_no_scores_that_rounding_could_swap(seed: int) -> None:
    problem, config = setup(2, form="lists")
    case = select_inputs.distinct(problem, OP.flags(problem, config), seed, "peers", [9 * PAGE, 17 * PAGE + 1])
    scores = select_inputs.index_inputs.reference(problem, case.arguments)
    for row in scores.flatten(0, 1):
        best = sorted(row[row.isfinite()].tolist(), reverse=True)[: BEST + 1]
        assert all(high - low > 1e-3 for high, low in pairwise(best))


@pytest.mark.parametrize("values", STRUCTURES[2:5], ids=lambda values: str(values["form"]))
def test_every_form_passes_the_gate(values: dict[str, Any]) -> None:
    problem, config = setup(query_len=2, **values)
    verdict = verify(OP, problem, config, render(OP, problem, config), seeds=(0,))
    assert verdict.status is Status.OK, verdict.reason


@pytest.mark.parametrize(
    ("heads", "values"),
    [
        (4, {"form": "scores", "scorer": "vector", "heads": "apart", "rows_packed": 2, "splits": 4}),
        (2, {"form": "lists", "scorer": "vector", "heads": "together", "rows_packed": 1, "splits": 16}),
        (3, {"form": "lists", "heads_in": "n", "heads": "apart", "rows_packed": 4, "splits": 2, "select": "sort"}),
        (4, {"form": "scores", "heads_in": "n", "rows_packed": 1, "splits": 1, "select": "sort"}),
    ],
    ids=["a vector a head", "a vector of heads", "rows packed", "a tile a row"],
)
def test_every_tile_of_pairs_is_selected_for_in_one_launch(heads: int, values: dict[str, Any]) -> None:
    selected(inputs([0, 1, 6 * PAGE + 2], query_len=3, heads=heads), **values)


def test_real_pages_and_lists_of_sixteen_pass_too() -> None:
    problem, device = index.problem("index_select", group_size=2)
    config = index.config(OP, problem, device, form="lists", splits=2, select="insert")
    for name in ("nan and infinities in the data", "peers"):
        case = index.case("index_select", problem, config, name)
        index.run(OP, problem, config, case.arguments)
        assert torch.equal(case.arguments["ids"].double(), OP.reference(case)["ids"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    lens=st.lists(
        st.sampled_from([0, 1, PAGE - 1, PAGE, PAGE + 1, 4 * PAGE, 4 * PAGE + 1, 7 * PAGE - 3]),
        min_size=1,
        max_size=2,
    ),
    query_len=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 3, 4]),
    forced=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    splits=st.sampled_from([1, 2, 4]),
    spoilt=st.sampled_from([0.0, NAN, INF, -INF]),
    copies=st.booleans(),
    seed=st.integers(0, 999),
)
def test_every_form_finds_what_the_oracle_finds(
    lens: list[int],
    query_len: int,
    heads: int,
    forced: tuple[int, int],
    splits: int,
    spoilt: float,
    copies: bool,
    seed: int,
) -> None:
    """The oracle is one product over gathered sequences and two stable sorts."""
    arguments = inputs(lens, query_len, heads, seed, init_blocks=forced[0], local_blocks=forced[1])
    table, keys = arguments["block_table"], arguments["k_cache"]
    if copies:
        table[:, 1::2] = table[:, :1]
    keys[: len(keys) // 2, seed % PAGE, seed % DIM] = spoilt
    scores = by_one_big_product(arguments["q"], keys, table, lens, query_len, *forced)
    rows = torch.arange(len(arguments["q"]))
    kv_len = (torch.tensor(lens)[rows // query_len] - query_len + rows % query_len + 1).clamp_min(0)
    wanted = torch.stack([oracle(of_head, -(-kv_len // PAGE), BEST) for of_head in scores])
    for form in ("apart", "scores", "lists"):
        arguments["ids"].fill_(12345)
        selected(arguments, form=form, splits=splits)
        assert torch.equal(arguments["ids"], wanted), form
