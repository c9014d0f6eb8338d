"""Kernels of nobody's, judged by the tests."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def add(x, y, out, n, BLOCK: tl.constexpr, TRIPS: tl.constexpr):
    start = tl.program_id(0) * BLOCK * TRIPS
    for trip in tl.range(TRIPS):
        at = start + trip * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.heuristics({"BLOCK": lambda args: 64})
@triton.jit
def gather(pages, table, out, count, BLOCK: tl.constexpr):
    """Every program sums the pages that its row of the table lists."""
    at, total = tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32)
    for index in tl.range(count):
        page = tl.load(table + tl.program_id(0) * count + index).to(tl.int64)
        total += tl.load(pages + page * BLOCK + at).to(tl.float32)
    tl.store(out + tl.program_id(0) * BLOCK + at, total)
