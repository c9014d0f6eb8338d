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
def double_some(x, out, n, limit, BLOCK: tl.constexpr):
    """Programs from `limit` on take another way."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    if tl.program_id(0) < limit:
        values = values * 2
        tl.store(out + at, values, mask=at < n)


@triton.jit
def sum_under_locks(x, total, lock, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Programs add their rows to one of GROUP sums, each under a lock that they spin on."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0)
    which = row % GROUP
    sums = total + which * columns + at
    while tl.atomic_cas(lock + which, 0, 1) == 1:
        pass
    tl.store(sums, tl.load(sums, mask=mask, other=0.0) + values, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock + which, 0)


@triton.jit
def _attend_to(
    q, k, v, acc, sums, tops, rows, low, high, length, scale, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Keys from low to high, which are masked only where the diagonal or the end of the sequence may be."""
    dims = tl.arange(0, HEAD_DIM)
    for start in tl.range(low, high, BLOCK_N, num_stages=STAGES):
        columns = start + tl.arange(0, BLOCK_N)
        inside = columns < length
        keys = tl.load(k + columns[None, :] * HEAD_DIM + dims[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(q, keys) * scale
        if MASKED:
            scores = tl.where((rows[:, None] >= columns[None, :]) & inside[None, :], scores, float("-inf"))
        new_tops = tl.maximum(tops, tl.max(scores, 1))
        weights = tl.exp2(scores - new_tops[:, None])
        decay = tl.exp2(tops - new_tops)
        values = tl.load(v + columns[:, None] * HEAD_DIM + dims[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(weights.to(values.dtype), values, acc * decay[:, None])
        sums = sums * decay + tl.sum(weights, 1)
        tops = new_tops
    return acc, sums, tops


@triton.jit
def attention(
    q, k, v, out, length, scale, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """[heads, length, HEAD_DIM]; `scale` is in base 2. GROUP heads take turns at one tile of queries. Without CAUSAL
    the length is a multiple of BLOCK_N."""
    tiles = tl.cdiv(length, BLOCK_M)
    number = tl.program_id(0)
    first = number // (GROUP * tiles) * GROUP
    head = first + number % GROUP
    tile = number % (GROUP * tiles) // GROUP
    offset = head.to(tl.int64) * length * HEAD_DIM
    rows, dims = tile * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    places = offset + rows[:, None] * HEAD_DIM + dims[None, :]
    queries = tl.load(q + places, mask=rows[:, None] < length, other=0.0)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    sums = tl.zeros((BLOCK_M,), tl.float32)
    tops = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    diagonal = tile * BLOCK_M if CAUSAL else length
    acc, sums, tops = _attend_to(
        queries, k + offset, v + offset, acc, sums, tops, rows, 0, diagonal, length, scale, HEAD_DIM, BLOCK_N,
        False, STAGES,
    )  # fmt: skip
    if CAUSAL:
        acc, sums, tops = _attend_to(
            queries, k + offset, v + offset, acc, sums, tops, rows, diagonal, diagonal + BLOCK_M, length, scale,
            HEAD_DIM, BLOCK_N, True, STAGES,
        )  # fmt: skip
    tl.store(out + places, acc / sums[:, None], mask=rows[:, None] < length)


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
