"""Identity: what tells kernels and configs apart must be in their keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen import ops
from m3gen.spec import DTYPES, KV_SCALES
from m3gen.tables.export import merged
from m3gen.tables.table import EXACT_FIELDS, KEY_FIELDS, config_id, kernel_key
from tests.tables.winners import config, finding, problem

VALUES = st.one_of(st.booleans(), st.integers(-8, 8), st.sampled_from(["m", "n"]))


def test_the_key_of_a_point_is_all_of_the_problem_but_op_and_arch() -> None:
    assert set(KEY_FIELDS) == set(problem().to_dict()) - {"op", "arch"}
    assert set(KEY_FIELDS) - set(EXACT_FIELDS) == {"rows", "context"}


def test_config_id_is_the_start_of_the_configs_sha() -> None:
    chosen = config(problem())
    assert config_id(chosen.to_dict()) == chosen.sha[:12]


@given(st.dictionaries(st.sampled_from("abcd"), VALUES), st.sampled_from("abcd"), VALUES)
def test_any_change_of_a_config_changes_its_key(values: dict[str, int], name: str, value: int) -> None:
    changed = {**values, name: value}
    same = repr(sorted(changed.items())) == repr(sorted(values.items()))
    assert (kernel_key("op", {}, changed) == kernel_key("op", {}, values)) is same
    assert (config_id(changed) == config_id(values)) is same


def test_one_and_true_are_two_configs() -> None:
    assert config_id({"a": 1}) != config_id({"a": True})


@pytest.mark.parametrize("name", EXACT_FIELDS)
def test_problems_whose_text_differs_have_kernels_of_their_own(name: str) -> None:
    op, here = ops.get("sparse_decode"), problem()
    table = merged(None, [finding(here)])
    values: tuple[Any, ...] = {
        "q_dtype": tuple(DTYPES),
        "kv_dtype": tuple(DTYPES),
        "kv_scale": KV_SCALES,
    }.get(name, (2, 64))
    for value in values:
        other = replace(here, **{name: value})
        text_differs = dict(op.variant(other)) != dict(op.variant(here))
        kernel_differs = table.kernel(other, table.points[0].config) != table.kernel(here, table.points[0].config)
        assert kernel_differs is text_differs


def test_buckets_are_the_edges_of_the_points() -> None:
    table = merged(None, [finding(problem(rows=rows)) for rows in (64, 1)])
    assert table.buckets == {"rows": (1, 64), "context": (1024,)}


def test_ratio_is_baseline_over_winner() -> None:
    point = merged(None, [finding(problem(), 5.0, baseline_us=20.0)]).points[0]
    assert point.ratio == 4.0
    assert replace(point, baseline_us=None).ratio is None
