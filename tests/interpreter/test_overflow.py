"""The check of integer operations for overflow."""

from __future__ import annotations

import pytest
import torch
from triton.runtime.errors import InterpreterError

from m3gen.interpreter import interpreting, overflow_unchecked

from . import kernels
from .kernels import launch


def combine(op: str, left: int, right: int, dtype: torch.dtype = torch.int32) -> int:
    """`left op right` in the middle of a block of ones."""
    x, y = torch.ones(16, dtype=dtype), torch.ones(16, dtype=dtype)
    x[5], y[5] = left, right
    result = torch.zeros(16, dtype=dtype)
    launch(kernels.binary, x, y, result, op, 16)
    return int(result[5])


OVER = [
    ("add", 2**31 - 1, 1, torch.int32),
    ("sub", -(2**31), 1, torch.int32),
    ("mul", 65536, 32768, torch.int32),
    ("mul", -65536, 32769, torch.int32),
    ("add", 127, 1, torch.int8),
    ("sub", 0, 1, torch.uint8),
]


@pytest.mark.parametrize(("op", "left", "right", "dtype"), OVER)
def test_an_overflow_went_unseen(op: str, left: int, right: int, dtype: torch.dtype) -> None:
    """Triton's check ends in an assertion that its interpreter leaves out: nothing was ever reported."""
    bits = dtype.itemsize * 8
    with pytest.raises(InterpreterError, match=f"int{bits} overflow detected for operation {op}"):
        combine(op, left, right, dtype)


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [
        ("add", 2**31 - 2, 1, 2**31 - 1),
        ("sub", -(2**31) + 1, 1, -(2**31)),
        ("mul", 65536, 32767, 65536 * 32767),
        ("mul", -65536, 32768, -(2**31)),
    ],
)
def test_the_ends_of_the_range_are_no_overflow(op: str, left: int, right: int, result: int) -> None:
    assert combine(op, left, right) == result


def test_64_bits_are_not_checked() -> None:
    assert combine("add", 2**63 - 1, 1, torch.int64) == -(2**63)


def test_unchecked_launches_wrap_and_the_check_comes_back() -> None:
    with interpreting(), overflow_unchecked():
        assert combine("add", 2**31 - 1, 1) == -(2**31)
    with pytest.raises(InterpreterError, match="overflow detected"):
        combine("add", 2**31 - 1, 1)
