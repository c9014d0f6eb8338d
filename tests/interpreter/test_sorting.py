"""Sorting by numpy against the networks that Triton writes out."""

from __future__ import annotations

import pytest
import torch
from triton.runtime.errors import InterpreterError

from . import kernels
from .kernels import bits, launch

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.uint32, torch.int64]
EDGES = (0, 1, -1, 2**31 - 1, -(2**31), -(2**63), 2**63 - 1)


def ordered(what: str, x: torch.Tensor, k: int) -> torch.Tensor:
    result = torch.zeros((len(x), k), dtype=x.dtype)
    launch(kernels.ordered, x, result, what, k, *x.shape)
    return result


def integers(dtype: torch.dtype, rows: int, columns: int) -> torch.Tensor:
    """Few values, so that equals meet, the ends of 8, 32 and 64 bits among them."""
    generator = torch.Generator().manual_seed(rows * columns)
    few = torch.tensor([*EDGES, *range(-9, 9)])
    return few[torch.randint(0, len(few), (rows, columns), generator=generator)].to(dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(("rows", "columns", "k"), [(1, 16, 16), (1, 32, 4), (4, 8, 2), (2, 8, 1)])
def test_the_greatest_are_those_of_the_network(dtype: torch.dtype, rows: int, columns: int, k: int) -> None:
    x = integers(dtype, rows, columns)
    assert torch.equal(ordered("topk", x, k), ordered("topk by network", x, k))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("what", ["sort", "descending"])
def test_both_orders_are_those_of_the_network(dtype: torch.dtype, what: str) -> None:
    x = integers(dtype, 2, 16)
    assert torch.equal(ordered(what, x, 16), ordered(f"{what} by network", x, 16))


def test_integers_do_not_go_through_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def network(*_: object) -> None:
        raise AssertionError

    from m3gen.interpreter import install

    install()
    from m3gen.interpreter import sorting

    monkeypatch.setattr(sorting, "_network_topk", network)
    monkeypatch.setattr(sorting, "_network_sort", network)
    x = torch.arange(16, dtype=torch.int64)[None]
    assert ordered("topk", x, 2).tolist() == [[15, 14]]
    assert ordered("descending", x, 16).tolist() == [list(range(15, -1, -1))]


def test_floats_keep_the_networks_own_order_of_nan() -> None:
    x = torch.tensor([[1.0, float("nan"), -0.0, 0.0, float("inf"), float("nan"), -3.0, 2.0]])
    for what in ("topk", "sort", "descending"):
        k = 4 if what == "topk" else 8
        assert torch.equal(bits(ordered(what, x, k)), bits(ordered(f"{what} by network", x, k)))


@pytest.mark.parametrize("k", [3, 32])
def test_what_the_network_refuses_is_refused(k: int) -> None:
    x = torch.zeros((1, 16), dtype=torch.int32)
    for what in ("topk", "topk by network"):
        with pytest.raises(InterpreterError):
            ordered(what, x, k)
