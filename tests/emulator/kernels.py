"""Triton kernels for the emulator's tests, in a file because Triton reads their source."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, values / tl.sum(values, 0), mask=at < columns)


@triton.jit
def matmul(a, b, out, K, M: tl.constexpr, N: tl.constexpr, TILE: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, TILE)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, TILE):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + m[:, None] * N + n[None, :], total)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    result = centred * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@triton.jit
def count(counter, order, BLOCK: tl.constexpr):
    """Every program takes a number."""
    number = tl.atomic_add(counter, 1)
    tl.store(order + tl.program_id(0), number)


@triton.jit
def reversed_through_shared(x, out, BLOCK: tl.constexpr):
    """Lanes exchange over waves."""
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(out + at, tl.flip(values))


@triton.jit
def search(x, out, BLOCK: tl.constexpr):
    """Loops of different lengths: how often each program's value can be halved."""
    value = tl.load(x + tl.program_id(0))
    steps = 0
    while value > 1:
        value = value // 2
        steps += 1
    tl.store(out + tl.program_id(0), steps)


@triton.jit
def sizes(out, BLOCK: tl.constexpr):
    """How large the launch is, which the hardware does not tell a wave."""
    tl.store(out, tl.num_programs(0))
    tl.store(out + 1, tl.num_programs(1))
    tl.store(out + 2, tl.num_programs(2))


@triton.jit
def matmul_of_doubles(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    product = tl.dot(tl.load(a + m[:, None] * K + k), tl.load(b + k[:, None] * N + n), out_dtype=tl.float64)
    tl.store(out + m[:, None] * N + n, product)


@triton.jit
def scaled_matmul(
    a,
    a_scale,
    b,
    b_scale,
    out,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
):
    """a [M, K], b [K, N], 4-bit elements in pairs along K; scales [M, K / 32] and [N, K / 32]."""
    A_K: tl.constexpr = K // 2 if A_FORMAT == "e2m1" else K
    B_K: tl.constexpr = K // 2 if B_FORMAT == "e2m1" else K
    m, n, block = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    left = tl.load(a + m[:, None] * A_K + tl.arange(0, A_K))
    right = tl.load(b + tl.arange(0, B_K)[:, None] * N + n)
    left_scale = tl.load(a_scale + m[:, None] * (K // 32) + block)
    right_scale = tl.load(b_scale + n[:, None] * (K // 32) + block)
    tl.store(out + m[:, None] * N + n, tl.dot_scaled(left, left_scale, A_FORMAT, right, right_scale, B_FORMAT))
