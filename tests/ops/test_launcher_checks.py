"""What a launcher refuses: one error naming the argument, what it is and what it must be, before any launch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import load_module, render
from tests import problems

OP = ops.get("sparse_decode")


@pytest.fixture(scope="module")
def launch() -> tuple[Any, dict[str, Any]]:
    """The launcher of a split variant and good arguments for it."""
    problem, device = problems.sparse_decode(fp8=True)
    config = OP.default(problem, device)
    arguments = dict(next(iter(OP.cases(problem, config, 0))).arguments)
    return load_module(render(OP, problem, config)).sparse_decode, arguments


def strided(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.repeat_interleave(2, dim=-1)[..., ::2]


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("q", lambda t: t.float(), "q is torch.float32, expected torch.bfloat16"),
        ("q", lambda t: t[..., :64], r"q has shape \[7, 16, 64\], expected \[7, 16, 128\]"),
        ("q", strided, "q has last stride 2, expected 1"),
        (
            "k_cache",
            lambda t: t.view(torch.float8_e4m3fn),
            "k_cache is torch.float8_e4m3fn, expected torch.float8_e4m3fnuz",
        ),
        ("k_cache", lambda t: t[:, :, :64], r"k_cache has shape .*, expected \[.*, 1, 128, 128\]"),
        ("v_cache", lambda t: t[:1], "v_cache has shape"),
        ("topk_ids", lambda t: t.long(), "topk_ids is torch.int64, expected torch.int32"),
        ("topk_ids", lambda t: t.transpose(0, 1), r"topk_ids has shape \[7, 1, 16\], expected \[1, 7, 16\]"),
        ("topk_ids", lambda t: t[..., :8], r"topk_ids has shape \[1, 7, 8\], expected \[1, 7, 16\]"),
        ("block_table", lambda t: t[:3], r"block_table has shape \[3, \d+\], expected \[7, any\]"),
        ("seq_lens", lambda t: t.long(), "seq_lens is torch.int64"),
        ("out", lambda t: t.to("meta"), "out is on meta, expected cpu"),
        ("k_scale", lambda t: t.double(), "k_scale is torch.float64, expected torch.float32"),
        ("v_scale", lambda t: t.expand(2), r"v_scale has shape \[2\], expected \[1\]"),
        ("query_len", lambda _: 0, "query_len is 0"),
        ("query_len", lambda _: 2, "query_len is 2, expected a divisor of the 7 rows"),
        ("partial_lse", lambda t: t[:1], "partial_lse has .* elements, expected"),
        ("partial_out", lambda t: t.float(), "partial_out is torch.float32, expected torch.bfloat16"),
    ],
)
def test_a_wrong_argument_is_named(
    launch: tuple[Any, dict[str, Any]], name: str, spoil: Any, message: str
) -> None:
    launcher, good = launch
    with pytest.raises(ValueError, match=message):
        launcher(**{**good, name: spoil(good[name])})
    assert good["out"].isnan().all(), "a refused launch wrote something"


def test_one_scale_without_the_other_is_refused(launch: tuple[Any, dict[str, Any]]) -> None:
    launcher, good = launch
    with pytest.raises(TypeError, match="v_scale"):
        launcher(**{name: value for name, value in good.items() if name != "v_scale"})
