"""Small kernels with everything the compiler room looks at, and launches of them."""

from __future__ import annotations

import functools
from typing import Any

from m3gen.codegen import KernelSource, Launch, Pointer
from m3gen.compiler.compile import Compiled, compile_launch
from m3gen.targets import architecture

ARCHS = ("gfx942", "gfx950", "sm_90", "sm_100")
GIB = 1 << 30

STEP = """
@triton.jit
def step(acc, m_i, q, k):
    scores = tl.dot(q, k)
    m_new = tl.maximum(m_i, tl.max(scores, 1))
    p = tl.exp2(scores - m_new[:, None])
    return acc * tl.exp2(m_i - m_new)[:, None], m_new, p
"""

ATTEND = """
@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, tokens, stride, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    pid = tl.program_id(0)
    offs_m = tl.arange(0, M)
    offs_d = tl.arange(0, D)
    offs_n = tl.arange(0, N)
    q = tl.load(q_ptr + pid * M * D + offs_m[:, None] * D + offs_d[None, :])
    acc = tl.zeros((M, D), tl.float32)
    m_i = tl.full((M,), -1e30, tl.float32)
    for start in range(0, tokens, N):
        offs = start + offs_n
        k = tl.load(k_ptr + offs[None, :] * stride + offs_d[:, None], mask=offs[None, :] < tokens, other=0.0)
        acc, m_i, p = step(acc, m_i, q, k)
        v = tl.load(v_ptr + offs[:, None] * stride + offs_d[None, :], mask=offs[:, None] < tokens, other=0.0)
        acc += tl.dot(p.to(v.dtype), v)
    tl.store(out_ptr + pid * M * D + offs_m[:, None] * D + offs_d[None, :], acc.to(out_ptr.dtype.element_ty))
"""

SUM_ROWS = """
@triton.jit
def sum_rows(x_ptr, out_ptr, rows, cols, B: tl.constexpr):
    offs = tl.arange(0, B)
    best = tl.zeros((B,), tl.float32)
    for row in range(0, rows):
        total = tl.zeros((B,), tl.float32)
        for col in range(0, cols):
            total += tl.load(x_ptr + row * cols + col * B + offs)
        best = tl.maximum(best, tl.exp2(total))
    tl.store(out_ptr + tl.program_id(0) * B + offs, best)
"""

SCALE = """
@triton.jit
def scale(x_ptr, out_ptr, factor, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * factor)
"""


def source(*kernels: str) -> KernelSource:
    """A module of these kernels, which may call those before them."""
    text = "import triton\nimport triton.language as tl\n\n" + "\n".join(kernels)
    return KernelSource(op="test", entry="run", text=text, templates={})


def launch(kernel: str, arguments: dict[str, Any], **options: int | bool | str) -> Launch:
    return Launch(kernel, tuple(arguments.items()), tuple(sorted(options.items())), (1, 1, 1))


def attend(*, alignment: int = 256, kv_bytes: int = GIB, n: int = 64, stride: int = 128, **options: Any) -> Launch:
    """bf16, 16 rows of head dim 128 over tiles of `n` tokens."""
    q = Pointer("bf16", alignment, 1 << 20)
    kv = Pointer("bf16", alignment, kv_bytes)
    arguments = {"q_ptr": q, "k_ptr": kv, "v_ptr": kv, "out_ptr": q, "tokens": 4096, "stride": stride}
    return launch(
        "attend", {**arguments, "M": 16, "N": n, "D": 128}, **{"num_warps": 4, "num_stages": 1} | options
    )


def sum_rows(rows: int = 41, cols: int = 33) -> Launch:
    x = Pointer("fp32", 256, 1 << 20)
    return launch("sum_rows", {"x_ptr": x, "out_ptr": x, "rows": rows, "cols": cols, "B": 1024}, num_warps=4)


def scale(**options: Any) -> Launch:
    x = Pointer("fp32", 256, 1 << 20)
    return launch("scale", {"x_ptr": x, "out_ptr": x, "factor": 0.5, "B": 256}, **options)


@functools.cache
def compiled(arch: str, what: Launch) -> Compiled:
    """The launch compiled from a module of all kernels, once per test run."""
    return compile_launch(source(STEP, ATTEND, SUM_ROWS, SCALE), what, architecture(arch))
