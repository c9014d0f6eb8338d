"""`Problem`: one canonical text and one sha per problem, and errors that name the field."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.spec import CONTEXT_BUCKETS, DTYPES, KV_SCALES, ROW_BUCKETS, ExactProblem, Problem

FIELDS = tuple(f.name for f in dataclasses.fields(Problem))
DOMAINS: dict[str, st.SearchStrategy[Any]] = {
    "op": st.sampled_from(["index_score", "sparse_decode", "merge"]),
    "arch": st.sampled_from(["gfx942", "gfx950", "sm_90"]),
    "compute_units": st.integers(1, 512),
    "q_dtype": st.sampled_from(sorted(DTYPES)),
    "kv_dtype": st.sampled_from(sorted(DTYPES)),
    "kv_scale": st.sampled_from(KV_SCALES),
    "group_size": st.integers(1, 64),
    "kv_heads": st.integers(1, 64),
    "head_dim": st.integers(1, 512),
    "page_size": st.integers(1, 1024),
    "topk": st.integers(1, 64),
    "query_len": st.integers(1, 8),
    "rows": st.sampled_from(ROW_BUCKETS),
    "context": st.sampled_from(CONTEXT_BUCKETS),
}
problems = st.fixed_dictionaries(DOMAINS).map(lambda values: Problem(**values))
EXAMPLE = Problem(op="sparse_decode", arch="gfx942", compute_units=304)


def test_the_domains_cover_every_field() -> None:
    assert set(DOMAINS) == set(FIELDS)


@given(problems)
def test_round_trip(problem: Problem) -> None:
    again = Problem.from_dict(json.loads(problem.canonical_json()))
    assert again == problem
    assert again.sha == problem.sha
    assert hash(again) == hash(problem)


@given(problems, st.sampled_from(FIELDS), st.data())
def test_every_field_changes_the_sha(problem: Problem, name: str, data: st.DataObject) -> None:
    value = data.draw(DOMAINS[name].filter(lambda v: v != getattr(problem, name)))
    assert dataclasses.replace(problem, **{name: value}).sha != problem.sha


def test_the_canonical_text_is_pinned() -> None:
    """Stored evaluations are found by this sha: a change of the text orphans them."""
    assert EXAMPLE.canonical_json() == (
        '{"arch":"gfx942","compute_units":304,"context":8192,"group_size":16,"head_dim":128,'
        '"kv_dtype":"bf16","kv_heads":1,"kv_scale":"none","op":"sparse_decode","page_size":128,'
        '"q_dtype":"bf16","query_len":1,"rows":1,"topk":16}'
    )
    assert EXAMPLE.sha == "eb360ebd38b5b9db769373ab1f09ca6aa02a5cca5ee17e5ceb22593f1d22db7d"


@given(problems, st.randoms())
def test_the_order_of_keys_does_not_count(problem: Problem, random: Any) -> None:
    items = list(problem.to_dict().items())
    random.shuffle(items)
    assert Problem.from_dict(dict(items)).sha == problem.sha


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, bad) for name in FIELDS for bad in (None, "", 0, -1, 3.5, True, [])]
    + [(name, "fp8") for name in FIELDS if name not in ("op", "arch")],  # there any name will do
)
def test_errors_name_the_field(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        Problem.from_dict(EXAMPLE.to_dict() | {name: value})


@pytest.mark.parametrize("name", [name for name in FIELDS if isinstance(getattr(EXAMPLE, name), int)])
def test_a_float_that_equals_an_integer_is_refused(name: str) -> None:
    """1.0 equals 1 but prints as "1.0": two equal problems would have two shas."""
    with pytest.raises(ValueError, match=name):
        Problem.from_dict(EXAMPLE.to_dict() | {name: float(getattr(EXAMPLE, name))})


@pytest.mark.parametrize(("name", "value"), [("rows", 3), ("context", 1000), ("rows", 1024)])
def test_a_load_off_the_buckets_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name}={value}: expected a bucket"):
        dataclasses.replace(EXAMPLE, **{name: value})  # type: ignore[arg-type]


def test_from_dict_names_unknown_and_missing_fields() -> None:
    with pytest.raises(ValueError, match="unknown problem fields: heads, width"):
        Problem.from_dict(EXAMPLE.to_dict() | {"width": 1, "heads": 2})
    with pytest.raises(ValueError, match="arch"):
        Problem.from_dict({"op": "merge", "compute_units": 304})


@given(st.integers(1, 512), st.integers(1, 1 << 20))
def test_with_load_rounds_up(rows: int, context: int) -> None:
    loaded = EXAMPLE.with_load(rows, context)
    assert rows <= loaded.rows < 2 * rows or loaded.rows == rows
    assert loaded.context >= context
    assert dataclasses.replace(loaded, rows=EXAMPLE.rows, context=EXAMPLE.context) == EXAMPLE


def test_with_load_keeps_the_context_unless_told() -> None:
    assert EXAMPLE.with_load(5).context == EXAMPLE.context
    assert EXAMPLE.with_load(5).rows == 8


@pytest.mark.parametrize(
    ("rows", "context", "named"),
    [(0, 1, "rows"), (513, 1, "rows"), (1, 0, "context"), (1, (1 << 20) + 1, "context")],
)
def test_with_load_names_the_figure_it_refuses(rows: int, context: int, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: "):
        EXAMPLE.with_load(rows, context)


def test_query_heads() -> None:
    assert Problem(op="merge", arch="sm_90", compute_units=132, group_size=16, kv_heads=4).q_heads == 64


def test_an_exact_problem_has_a_load_that_is_no_bucket_and_all_else_of_its_problem() -> None:
    problem = Problem(op="merge", arch="gfx942", compute_units=304, kv_dtype="e4m3fnuz", topk=8)
    exact = ExactProblem.of(problem, 3, 9472)
    assert exact.to_dict() == {**problem.to_dict(), "rows": 3, "context": 9472}
    assert exact != problem
    assert ExactProblem.of(problem, 3, 9472) == exact


@pytest.mark.parametrize("load", [(0, 1024), (1, 0)])
def test_an_exact_problem_has_a_load(load: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected a positive integer"):
        ExactProblem.of(Problem(op="merge", arch="gfx942", compute_units=304), *load)
