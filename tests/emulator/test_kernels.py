"""Triton kernels on both architectures, compiled and executed, against torch."""

from __future__ import annotations

import math

import pytest
import torch

from m3gen.emulator import Emulator, emulating
from m3gen.errors import UserError
from tests.emulator import kernels

ARCHS = ["gfx942", "gfx950"]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("late", [True, False])
def test_add(arch: str, late: bool) -> None:
    x, y, out = torch.randn(1000), torch.randn(1000), torch.full((1000,), float("nan"))
    with emulating(arch, late=late):
        kernels.add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("warps", [1, 4])
def test_softmax(arch: str, warps: int) -> None:
    x, out = torch.randn(70, 300), torch.full((70, 300), float("nan"))
    with emulating(arch):
        kernels.softmax[(70,)](x, out, 300, BLOCK=512, num_warps=warps)
    torch.testing.assert_close(out, x.softmax(1))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("warps", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_matmul(arch: str, warps: int, dtype: torch.dtype) -> None:
    a, b, out = torch.randn(32, 128).to(dtype), torch.randn(128, 64).to(dtype), torch.full((32, 64), float("nan"))
    with emulating(arch):
        kernels.matmul[(1,)](a, b, out, 128, M=32, N=64, TILE=32, num_warps=warps)
    # gfx942 multiplies fp32 as xf32, with 10 bits of mantissa, unless told otherwise.
    bound = 0.2 if (arch, dtype) == ("gfx942", torch.float32) else 2e-4
    torch.testing.assert_close(out, (a.double() @ b.double()).float(), atol=bound, rtol=2e-4)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_matmul_of_8_bit_floats(arch: str, kind: str) -> None:
    dtype = getattr(torch, f"float8_{kind}{'fnuz' if arch == 'gfx942' else 'fn' if kind == 'e4m3' else ''}")
    a, b = torch.randn(32, 128).to(dtype), torch.randn(128, 64).to(dtype)
    out = torch.full((32, 64), float("nan"))
    with emulating(arch):
        kernels.matmul[(1,)](a, b, out, 128, M=32, N=64, TILE=64)
    torch.testing.assert_close(out, (a.double() @ b.double()).float(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("kind", "causal", "warps", "stages"),
    [
        ("float16", True, 4, 3),
        ("float16", False, 1, 1),
        ("bfloat16", True, 2, 1),
        ("bfloat16", False, 4, 2),
        ("e4m3", True, 4, 2),
        ("e5m2", False, 2, 1),
    ],
)
def test_fused_attention(arch: str, kind: str, causal: bool, warps: int, stages: int) -> None:
    is_fp8 = kind.startswith("e")
    fnuz = "fnuz" if arch == "gfx942" else "fn" if kind == "e4m3" else ""
    dtype = getattr(torch, f"float8_{kind}{fnuz}" if is_fp8 else kind)
    length, head_dim = 150 if causal else 128, 64
    q, k, v = (torch.randn(4, length, head_dim).to(dtype) for _ in range(3))
    out = torch.full((4, length, head_dim), float("nan"))
    scale = head_dim**-0.5
    with emulating(arch):
        kernels.attention[(4 * -(-length // 64),)](
            q, k, v, out, length, scale * math.log2(math.e), HEAD_DIM=head_dim, BLOCK_M=64, BLOCK_N=32,
            CAUSAL=causal, GROUP=2, STAGES=stages, num_warps=warps,
        )  # fmt: skip
    scores = q.double() @ k.double().transpose(1, 2) * scale
    if causal:
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -torch.inf)
    answer = scores.softmax(2) @ v.double()
    error = (out - answer).square().mean().sqrt() / answer.square().mean().sqrt()
    # Weights are rounded to the type of V: 3 and 2 bits of mantissa for fp8.
    assert error < {"float16": 1e-3, "bfloat16": 5e-3, "e4m3": 5e-2, "e5m2": 1e-1}[kind]


@pytest.mark.parametrize("arch", ARCHS)
def test_matmul_of_doubles(arch: str) -> None:
    a, b = torch.randn(32, 16).double(), torch.randn(16, 64).double()
    out = torch.full((32, 64), float("nan")).double()
    with emulating(arch):
        kernels.matmul_of_doubles[(1,)](a, b, out, M=32, N=64, K=16)
    torch.testing.assert_close(out, a @ b, atol=1e-12, rtol=1e-12)


CODES_OF_4_BITS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def operand(rows: int, k: int, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows, k] as a kernel takes it, 4-bit elements in pairs, and its values."""
    if kind == "e2m1":
        codes = torch.randint(0, 16, (rows, k), dtype=torch.uint8)
        return codes[:, 0::2] | codes[:, 1::2] << 4, CODES_OF_4_BITS[codes.long()].double()
    stored = torch.randn(rows, k).to(torch.float8_e4m3fn if kind == "e4m3" else torch.float8_e5m2)
    return stored, stored.double()


@pytest.mark.parametrize(
    ("a_kind", "b_kind"), [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e4m3", "e2m1")]
)
@pytest.mark.parametrize("arch", ARCHS)
def test_scaled_matmul(arch: str, a_kind: str, b_kind: str) -> None:
    """On gfx950 the matrix unit applies the scales, and tiles of B are transposed on their way out of the LDS: layouts
    in which Triton and the hardware agree. gfx942 has instructions for neither."""
    m, n, k = 32, 64, 256
    (a, left), (b, right) = operand(m, k, a_kind), operand(n, k, b_kind)
    scales = [torch.randint(123, 132, (rows, k // 32), dtype=torch.uint8) for rows in (m, n)]
    factors = [torch.exp2(one.double() - 127).repeat_interleave(32, 1) for one in scales]
    out = torch.full((m, n), float("nan"))
    with emulating(arch) as emulator:
        kernels.scaled_matmul[(1,)](
            a, scales[0], b.T.contiguous(), scales[1], out, M=m, N=n, K=k, A_FORMAT=a_kind, B_FORMAT=b_kind
        )
    expected = ((left * factors[0]) @ (right * factors[1]).T).float()
    torch.testing.assert_close(out, expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-5)
    [code] = emulator._codes.values()
    assembly = code.assembly
    assert ("v_mfma_scale_f32" in assembly) == ("ds_read_b64_tr_b8" in assembly) == (arch == "gfx950")


@pytest.mark.parametrize("arch", ARCHS)
def test_layer_norm(arch: str) -> None:
    x, weight, bias, out = torch.randn(9, 200), torch.randn(200), torch.randn(200), torch.empty(9, 200)
    with emulating(arch):
        kernels.layer_norm[(9,)](x, weight, bias, out, 200, 1e-5, BLOCK=256)
    torch.testing.assert_close(out, torch.nn.functional.layer_norm(x, (200,), weight, bias))


@pytest.mark.parametrize("arch", ARCHS)
def test_atomics_across_workgroups(arch: str) -> None:
    """More workgroups than run in step."""
    counter, order = torch.zeros(1, dtype=torch.int32), torch.full((150,), -1, dtype=torch.int32)
    with emulating(arch):
        kernels.count[(150,)](counter, order, BLOCK=64)
    assert counter.item() == 150
    assert sorted(order.tolist()) == list(range(150))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("warps", [1, 4])
def test_a_workgroup_that_spins_on_a_lock_does_not_keep_its_owner_from_running(arch: str, warps: int) -> None:
    x, total, lock = torch.randn(12, 200), torch.zeros(3, 200), torch.zeros(3, dtype=torch.int32)
    with emulating(arch):
        kernels.sum_under_locks[(12,)](x, total, lock, 200, GROUP=3, BLOCK=256, num_warps=warps)
    torch.testing.assert_close(total, torch.stack([x[first::3].sum(0) for first in range(3)]))
    assert lock.tolist() == [0, 0, 0]


@pytest.mark.parametrize("arch", ARCHS)
def test_waves_that_exchange(arch: str) -> None:
    x, out = torch.randn(1024), torch.empty(1024)
    for seed in range(3):
        out.fill_(float("nan"))
        with emulating(arch, seed=seed):
            kernels.reversed_through_shared[(1,)](x, out, BLOCK=1024, num_warps=4)
        assert torch.equal(out, x.flip(0))


@pytest.mark.parametrize("arch", ARCHS)
def test_programs_that_part_and_meet(arch: str) -> None:
    x = torch.tensor([1, 2, 3, 1000, 7, 1 << 30, 5, 1], dtype=torch.int32)
    out = torch.full_like(x, -1)
    with emulating(arch):
        kernels.search[(8,)](x, out, BLOCK=64)
    assert out.tolist() == [int(value).bit_length() - 1 for value in x.tolist()]


@pytest.mark.parametrize("arch", ARCHS)
def test_a_kernel_knows_how_large_its_launch_is(arch: str) -> None:
    out = torch.zeros(3, dtype=torch.int32)
    with emulating(arch):
        kernels.sizes[(5, 3, 2)](out, BLOCK=64)
    assert out.tolist() == [5, 3, 2]


def test_code_is_compiled_once_for_each_specialisation() -> None:
    x, y, out = torch.randn(1024), torch.randn(1024), torch.empty(1024)
    with emulating("gfx942") as emulator:
        for n in (1024, 1000, 1008):  # multiples of 16, or not
            kernels.add[(4,)](x, y, out, n, BLOCK=256)
        assert len(emulator._codes) == 2
    assert emulator.launches == 3


def test_only_amd_has_machine_code_here() -> None:
    with pytest.raises(UserError, match="only AMD's machine code can be executed, sm_90 is not"):
        Emulator("sm_90")


def test_flushed_denormals_were_kept() -> None:
    """The descriptor's mode was read and not heeded."""
    x, y, out = torch.full((256,), 1e-39), torch.zeros(256), torch.zeros(256)
    with (
        emulating("gfx942"),
        pytest.raises(UserError, match="flushes denormals, which is not modelled: compile without"),
    ):
        kernels.add[(1,)](x, y, out, 256, BLOCK=256, allow_flush_denorm=True)


def test_a_process_that_interprets_ran_kernels_without_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(UserError, match="TRITON_INTERPRET is set"), emulating("gfx942"):
        pass


def test_a_launch_after_it_is_the_stock_one() -> None:
    from triton.runtime.jit import JITFunction

    before = JITFunction.run
    with emulating("gfx942"):
        assert JITFunction.run is not before
    assert JITFunction.run is before
