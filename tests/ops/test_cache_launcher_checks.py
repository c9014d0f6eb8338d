"""What the launchers of the cache ops refuse: one error naming the argument, before any launch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.evaluate.comparison import first_difference
from tests.ops import cache_problems

SCALAR, TOKEN = "scalar", "per_token_head"
OTHER = torch.float8_e4m3fn  # of the two dialects the one that gfx942 does not have


def strided(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.repeat_interleave(2, dim=-1)[..., ::2]


@pytest.mark.parametrize(
    ("op", "scale", "case", "name", "spoil", "message"),
    [
        ("qk_norm_rope_insert", SCALAR, 0, "qkv", lambda t: t.float(), "qkv is torch.float32, expected"),
        (
            "qk_norm_rope_insert",
            SCALAR,
            0,
            "qkv",
            lambda t: t[:, :-128],
            r"qkv has shape \[7, 2432\], expected \[7, 2560",
        ),
        ("qk_norm_rope_insert", SCALAR, 0, "positions", lambda t: t.int(), "positions is torch.int32"),
        ("qk_norm_rope_insert", SCALAR, 0, "cos_sin_cache", lambda t: t[:, :32], "cos_sin_cache has shape"),
        (
            "qk_norm_rope_insert",
            SCALAR,
            0,
            "cos_sin_cache",
            lambda t: t.half(),
            "float16, expected .*bfloat16 or .*float32",
        ),
        (
            "qk_norm_rope_insert",
            SCALAR,
            0,
            "k_cache",
            lambda t: t.view(OTHER),
            "k_cache is torch.float8_e4m3fn, expected",
        ),
        ("qk_norm_rope_insert", SCALAR, 0, "k_cache", lambda t: t[:, :, :64], "k_cache has shape"),
        ("qk_norm_rope_insert", SCALAR, 0, "slot_mapping", lambda t: t.int(), "slot_mapping is torch.int32"),
        ("qk_norm_rope_insert", SCALAR, 0, "q_out", lambda t: t.repeat(1, 1, 2)[..., :128], "q_out has strides"),
        (
            "qk_norm_rope_insert",
            SCALAR,
            0,
            "index_cache",
            lambda t: t.view(torch.float16),
            "index_cache is torch.float16",
        ),
        ("qk_norm_rope_insert", SCALAR, 0, "index_k_weight", lambda _: None, "index_k_weight is missing beside"),
        (
            "qk_norm_rope_insert",
            SCALAR,
            1,
            "index_slot_mapping",
            lambda _: torch.zeros(3),
            "is missing beside index_slot",
        ),
        ("qk_norm_rope_insert", SCALAR, 0, "k_scale", lambda t: t.double(), "k_scale is torch.float64"),
        (
            "qk_norm_rope_insert",
            TOKEN,
            0,
            "v_scale",
            lambda t: t.new_zeros(1, 999)[:, :384],
            "v_scale has strides .*, expected those of k_scale",
        ),
        ("kv_insert", TOKEN, 0, "k", strided, "k has last stride 2, expected 1"),
        ("kv_insert", TOKEN, 0, "v", lambda t: t[:3], "v has shape"),
        ("kv_insert", TOKEN, 0, "k_scale", lambda t: t[:, :-1], "k_scale has shape"),
        ("kv_insert", TOKEN, 0, "index_k", lambda _: None, "index_k is missing beside index_cache"),
        ("kv_insert", TOKEN, 0, "v_cache", lambda t: t.view(OTHER), "v_cache is torch.float8_e4m3fn"),
        (
            "kv_gather",
            TOKEN,
            0,
            "block_table",
            lambda t: t.long(),
            "block_table is torch.int64, expected torch.int32",
        ),
        ("kv_gather", TOKEN, 0, "starts", lambda t: t[:-1], r"starts has shape \[5\], expected \[6\]"),
        ("kv_gather", TOKEN, 0, "k_out", lambda t: t.float(), "k_out is torch.float32, expected"),
        ("kv_gather", TOKEN, 0, "k_scale_out", lambda _: torch.zeros(1), "k_scale_out is given though"),
        ("kv_gather", TOKEN, 1, "v_scale_out", lambda _: None, "v_scale_out is missing though"),
        ("kv_copy", TOKEN, 0, "pairs", lambda t: t.int(), "pairs is torch.int32, expected torch.int64"),
        ("kv_copy", TOKEN, 0, "pairs", lambda t: t[:, :1], "pairs has shape"),
        ("kv_copy", TOKEN, 0, "index_pairs", lambda _: None, "index_pairs is missing beside index_cache"),
        ("kv_copy", TOKEN, 0, "k_cache", lambda t: t[:, :, :64], "k_cache has shape"),
        (
            "kv_convert",
            TOKEN,
            0,
            "target_layout",
            lambda _: "page32",
            "target_layout is 'page32', expected one of",
        ),
        ("kv_convert", TOKEN, 0, "target_layout", lambda _: "pages", "target_k has shape"),
        ("kv_convert", TOKEN, 0, "target_k_scale", lambda _: None, "target_k_scale is missing beside"),
        ("kv_convert", TOKEN, 4, "source_k_scale", lambda _: torch.zeros(1), "source_k_scale is given beside"),
        ("kv_convert", TOKEN, 0, "source_v", lambda t: t.view(OTHER), "source_v is torch.float8_e4m3fn"),
        ("kv_zero", TOKEN, 0, "blocks", lambda t: t[:, None], "blocks has shape"),
        ("kv_zero", TOKEN, 0, "index_cache", lambda _: None, "index_cache is missing beside index_blocks"),
    ],
)
def test_a_wrong_argument_is_named(op: str, scale: str, case: int, name: str, spoil: Any, message: str) -> None:
    of, device = cache_problems.problem(op, scale=scale)
    good = list(ops.get(op).cases(of, cache_problems.config(of, device), 0))[case]
    before = {output: good.arguments[output].clone() for output in good.kept}
    with pytest.raises(ValueError, match=message):
        cache_problems.launcher(of, device)(**{**good.arguments, name: spoil(good.arguments.get(name))})
    for output, tensor in before.items():
        assert first_difference(tensor, good.arguments[output]) is None, "a refused launch wrote"


@pytest.mark.parametrize("op", ["qk_norm_rope_insert", "kv_insert", "kv_gather", "kv_convert"])
def test_one_scale_without_the_other_is_refused(op: str) -> None:
    of, device = cache_problems.problem(op, scale=SCALAR)
    good = next(iter(ops.get(op).cases(of, cache_problems.config(of, device), 0))).arguments
    with pytest.raises(TypeError, match="v_scale"):
        cache_problems.launcher(of, device)(**{key: value for key, value in good.items() if key != "v_scale"})


@pytest.mark.parametrize("op", ["kv_copy", "kv_zero", "kv_gather", "kv_convert"])
def test_an_empty_list_is_no_launch_and_no_error(op: str) -> None:
    of, device = cache_problems.problem(op)
    good = dict(next(iter(ops.get(op).cases(of, cache_problems.config(of, device), 0))).arguments)
    empty = {
        key: good[key][:0]
        for key in ("pairs", "index_pairs", "blocks", "index_blocks", "block_table")
        if key in good
    }
    if op == "kv_gather":
        empty["starts"] = good["starts"][:1]
    cache_problems.launcher(of, device)(**{**good, **empty})  # compiled or interpreted, a launch would fail here
