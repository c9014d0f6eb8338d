"""Small kernels that the tests launch, one program each, on flat blocks of BLOCK elements."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from m3gen.interpreter import interpreting

BF16 = torch.bfloat16
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)
TRITON_NAME = dict(zip(FLOAT8, ("fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16"), strict=True)) | {BF16: "bf16"}


def launch(kernel: Any, *args: Any, **kwargs: Any) -> None:
    with interpreting():
        kernel[(1,)](*args, **kwargs)


def all_codes(dtype: torch.dtype) -> torch.Tensor:
    """Every code of a 1- or 2-byte dtype in order."""
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=torch.uint8).view(dtype)
    return torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The codes, with -1 << 63 for every NaN: payloads differ between machines."""
    codes = tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize])
    return torch.where(tensor.double().isnan(), torch.iinfo(torch.int64).min, codes.long())


@triton.jit
def cast(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty))


@triton.jit
def cast_toward_zero(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def store_without_cast(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def bitcast(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty, bitcast=True))


@triton.jit
def binary(x, y, z, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "div":
        c = a / b
    elif OP == "min":
        c = tl.minimum(a, b)
    else:
        c = tl.maximum(a, b)
    tl.store(z + at, c.to(z.dtype.element_ty))


@triton.jit
def compare(x, y, z, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    if OP == "lt":
        c = a < b
    elif OP == "le":
        c = a <= b
    elif OP == "gt":
        c = a > b
    elif OP == "ge":
        c = a >= b
    elif OP == "eq":
        c = a == b
    else:
        c = a != b
    tl.store(z + at, tl.where(c, 1, 0))
    tl.store(z + at, 1, mask=c)  # the result is a mask as it stands


@triton.jit
def unary(x, y, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    if OP == "neg":
        b = -a
    elif OP == "abs":
        b = tl.abs(a)
    else:
        b = tl.exp2(a.to(tl.float32)).to(a.dtype)
    tl.store(y + at, b)


@triton.jit
def fma(x, y, z, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.fma(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


@triton.jit
def clamp(x, y, LOW: tl.constexpr, HIGH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    low = tl.full((BLOCK,), LOW, a.dtype)
    high = tl.full((BLOCK,), HIGH, a.dtype)
    tl.store(y + at, tl.clamp(a, low, high).to(a.dtype))


@triton.jit
def fill(y, VALUE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), tl.full((BLOCK,), VALUE, y.dtype.element_ty))


@triton.jit
def dot(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    acc = tl.load(c + m * N + n)
    x = tl.load(a + m * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n)
    tl.store(out + m * N + n, tl.dot(x, y, acc, out_dtype=acc.dtype))


@triton.jit
def reduce(x, y, OP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    a = tl.load(x + row[:, None] * COLUMNS + column[None, :])
    if OP == "sum":
        b = tl.sum(a, 1)
    elif OP == "max":
        b = tl.max(a, 1)
    elif OP == "min":
        b = tl.min(a, 1)
    elif OP == "argmax":
        b = tl.argmax(a, 1)
    else:
        b = tl.argmin(a, 1)
    tl.store(y + row, b.to(y.dtype.element_ty))


@triton.jit
def total(x, y, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.load(x + tl.arange(0, BLOCK))))


@triton.jit
def cumsum(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.cumsum(tl.load(x + at), 0).to(y.dtype.element_ty))


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def reduce_by_hand(x, y, BLOCK: tl.constexpr):
    tl.store(y, tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, larger))


@triton.jit
def scalar_condition_in_mask(x, y, limit, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first = tl.load(x)
    inside = (first >= 0) & (first < limit)
    tl.store(y + at, tl.load(x + at), mask=(at < BLOCK // 2) & inside)


@triton.jit
def atomic_add_at(x, at, y, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.atomic_add(y + tl.load(at + lane), tl.load(x + lane), mask=lane < BLOCK - 1)


@triton.jit
def load_past_the_end(x, y, n, BLOCK: tl.constexpr):
    block = tl.make_tensor_descriptor(x, shape=[n], strides=[1], block_shape=[BLOCK], padding_option="nan")
    tl.store(y + tl.arange(0, BLOCK), block.load([0]))


@triton.jit
def sort(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.sort(tl.load(x + at)))


@triton.jit
def total_in_float32(x, y, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.load(x + tl.arange(0, BLOCK)), dtype=tl.float32))


@triton.jit
def count_to_the_largest(x, y, BLOCK: tl.constexpr):
    turns = 0
    for _ in range(tl.max(tl.load(x + tl.arange(0, BLOCK)), 0)):
        turns += 1
    tl.store(y, turns)


@triton.jit
def product(x, y, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * factor)


@triton.jit
def ordered(x, result, what: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The last dimension of [ROWS, COLUMNS], by the names of the language or by the network behind them."""
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    values = tl.load(x + row[:, None] * COLUMNS + column[None, :])
    if what == "topk":
        values = tl.topk(values, K)
    elif what == "topk by network":
        values = tl.standard.sort_impl(values, k=K, descending=True)
    elif what == "sort":
        values = tl.sort(values)
    elif what == "sort by network":
        values = tl.standard.sort_impl(values)
    elif what == "descending":
        values = tl.sort(values, descending=True)
    else:
        values = tl.standard.sort_impl(values, descending=True)
    tl.store(result + row[:, None] * K + tl.arange(0, K)[None, :], values)
