"""The plain words."""

from __future__ import annotations

from typing import Any

import pytest

from m3gen import ops, targets
from m3gen.evaluate.evaluation import Stage
from m3gen.report import words
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3, Status
from tests.report.rows import DEFAULT, TUNED, problem


def test_every_status_has_words() -> None:
    assert set(words.STATUSES) == set(Status)


def test_shared_memory_goes_by_the_vendors_name() -> None:
    assert words.limit("shared", "gfx942") == "LDS"
    assert words.limit("shared", "sm_90") == "shared mem"
    assert words.limit("matrix", "gfx942") == "matrix unit"


def test_a_prediction_names_its_model_and_interval() -> None:
    assert words.judged(Stage.PREDICTED, "predict-amd-1", 8.0, 10.8) == "predicted by predict-amd-1 (±35 %)"
    assert words.judged(Stage.PREDICTED, "predict-amd-1", 8.0, None) == "predicted by predict-amd-1"
    assert words.judged(Stage.MEASURED, "measure-1", 8.0, 8.1) == "measured"


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_the_ranks_of_a_shard_are_recognised(ranks: int) -> None:
    shard = MINIMAX_M3.shard(ranks)
    of_shard = problem(group_size=shard.group_size, kv_heads=shard.kv_heads)
    assert words.tensor_parallel(of_shard) == ranks


@pytest.mark.parametrize("shape", [{"group_size": 5}, {"head_dim": 64}, {"group_size": 4, "kv_heads": 4}])
def test_what_is_no_shard_of_the_model_is_told_by_its_heads(shape: dict[str, Any]) -> None:
    other = problem(**shape)
    assert words.tensor_parallel(other) is None
    assert words.shard(other) == f"{other.q_heads}q/{other.kv_heads}kv"


def test_a_context_past_which_nothing_changes_is_open_ended() -> None:
    assert words.context(problem(context=2048)) == "2,048 and up"
    assert words.context(problem(context=1024)) == "1,024"


def test_a_config_in_short_is_what_differs_from_the_default() -> None:
    assert words.config_line(TUNED, DEFAULT) == "masked_loads=false, tile_n=64"
    assert words.config_line(DEFAULT, DEFAULT) == "as the field"
    assert words.config_line(TUNED).startswith("loads=apart, masked_loads=false, ")


def test_one_and_true_are_two_values() -> None:
    assert words.config_line(Config({"flag": True}), Config({"flag": 1})) == "flag=true"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.94, "0.9 s"), (42.9, "42 s"), (185, "3 min 05 s"), (3720, "1 h 02 min"), (0, "0.0 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (8.125, "8.12"), (17.31, "17.3"), (12345.6, "12,346")])
def test_microseconds(value: float | None, text: str) -> None:
    assert words.microseconds(value) == text


def test_counts_begin_with_the_most_frequent_and_leave_out_zeros() -> None:
    assert words.counts({"b": 2, "a": 2, "c": 1200, "d": 0}) == "c 1,200, a 2, b 2"
    assert words.counts({}) == "none"
    assert words.failures({Status.TIMEOUT: 2, Status.OK: 0}) == "ran past its deadline 2"


def test_ranks_are_those_of_the_op_not_of_its_heads() -> None:
    device = targets.default_device("gfx942")
    for op in map(ops.get, ops.names()):
        for ranks, same in ((1, 1), (2, 2), (4, 4)):
            problem = op.problem(device, MINIMAX_M3.shard(ranks), ops.Cache("bf16"), 1)
            assert problem is not None
            assert words.tensor_parallel(problem) == same, op.name
