"""Every shape of the matrix unit against a plain product, its lanes laid out by the rule of AMD's matrix instruction
calculator, written down here once more."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from m3gen.emulator.isa.matrix import names, shape_of
from m3gen.emulator.program import Instruction
from tests.emulator.harness import Registers, machine

BYTES = {"bf16": 2, "f16": 2, "fp8": 1, "bf8": 1, "f32": 4, "xf32": 4, "i8": 1}


def dtype(kind: str, arch: str) -> torch.dtype:
    fnuz = arch == "gfx942"
    return {
        "bf16": torch.bfloat16,
        "f16": torch.float16,
        "f32": torch.float32,
        "xf32": torch.float32,
        "i8": torch.int8,
        "fp8": torch.float8_e4m3fnuz if fnuz else torch.float8_e4m3fn,
        "bf8": torch.float8_e5m2fnuz if fnuz else torch.float8_e5m2,
    }[kind]


def matrix(rng: np.random.Generator, rows: int, k: int, kind: str, arch: str) -> torch.Tensor:
    """Small values that every type holds exactly, so that sums are exact in any order."""
    return torch.from_numpy(rng.integers(-3, 4, (rows, k)).astype(np.float32)).to(dtype(kind, arch))


def fill(registers: Registers, first: int, of: torch.Tensor, m: int, blocks: int) -> None:
    """Lane l holds row l % m of block l // m % blocks, from k = (l // (m blocks)) * each on."""
    rows, k = of.shape[1], of.shape[2]
    groups = 64 // (m * blocks)
    each = k // groups
    assert rows == m
    words = []
    for lane in range(64):
        block, group = lane // m % blocks, lane // (m * blocks)
        part = of[block, lane % m, group * each : (group + 1) * each].contiguous()
        words.append(part.view(torch.uint8).numpy().view(np.uint32))
    for number in range(len(words[0])):
        registers.vector(first + number, [int(word[number]) for word in words])


def where(m: int, lane: int, register: int, blocks: int) -> tuple[int, int, int]:
    """Block, row and column of a result."""
    if m == 4:
        return lane // 4, register, lane % 4
    if m == 16:
        return 0, 4 * (lane // 16) + register, lane % 16
    return 0, 8 * (register // 4) + 4 * (lane // 32) + register % 4, lane % 32


@pytest.mark.parametrize("mnemonic", names())
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_product(mnemonic: str, arch: str) -> None:
    rng = np.random.default_rng(0)
    shape = shape_of(Instruction(mnemonic, "", (), {}, 1, "", mnemonic))
    registers, per_source = Registers(), shape.k * shape.m * shape.blocks * BYTES[shape.a] // 256
    a = torch.stack([matrix(rng, shape.m, shape.k, shape.a, arch) for _ in range(shape.blocks)])
    b = torch.stack([matrix(rng, shape.n, shape.k, shape.b, arch) for _ in range(shape.blocks)])
    fill(registers, 0, a, shape.m, shape.blocks)
    fill(registers, 32, b, shape.n, shape.blocks)
    results = shape.m * shape.n * shape.blocks // 64
    kind = np.float32 if shape.result == "f32" else np.int32
    c = rng.integers(-9, 9, (results, 64)).astype(kind)
    for number in range(results):
        registers.vector(64 + number, c[number].view(np.uint32).tolist())

    def span(first: int, count: int) -> str:
        return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"

    operands = [span(64, results), span(0, per_source), span(32, per_source), span(64, results)]
    machine(f"{mnemonic} {', '.join(operands)}", arch)._steps[0](registers.group)
    product = torch.einsum("bik,bjk->bij", a.double(), b.double()).numpy()
    for register in range(results):
        found = np.array(registers.lanes(64 + register), np.uint32).view(kind)
        for lane in range(64):
            block, row, column = where(shape.m, lane, register, shape.blocks)
            assert found[lane] == product[block, row, column] + c[register, lane], (register, lane)


def test_a_constant_addend_and_accumulation_registers() -> None:
    rng = np.random.default_rng(1)
    registers = Registers(active=0)  # EXEC does not matter
    a, b = matrix(rng, 16, 16, "bf16", "gfx942")[None], matrix(rng, 16, 16, "bf16", "gfx942")[None]
    fill(registers, 256, a, 16, 1)  # a0
    fill(registers, 4, b, 16, 1)
    machine("v_mfma_f32_16x16x16_bf16 a[8:11], a[0:1], v[4:5], 1.0")._steps[0](registers.group)
    product = (a[0].double() @ b[0].double().T).numpy()
    found = np.array(registers.lanes(256 + 8 + 2), np.uint32).view(np.float32)
    assert found[17] == product[4 * 1 + 2, 1] + 1.0


@pytest.mark.parametrize(("cbsz", "abid"), [(1, 1), (2, 3), (4, 0), (4, 9)])
def test_blocks_that_share_one_a(cbsz: int, abid: int) -> None:
    rng = np.random.default_rng(3)
    registers = Registers()
    a, b = (torch.stack([matrix(rng, 4, 4, "bf16", "gfx942") for _ in range(16)]) for _ in range(2))
    fill(registers, 0, a, 4, 16)
    fill(registers, 2, b, 4, 16)
    line = f"v_mfma_f32_4x4x4_16b_bf16 v[4:7], v[0:1], v[2:3], 0 cbsz:{cbsz} abid:{abid}"
    machine(line)._steps[0](registers.group)
    for register in range(4):
        found = np.array(registers.lanes(4 + register), np.uint32).view(np.float32)
        for lane in range(64):
            block, row, column = where(4, lane, register, 16)
            source = (block >> cbsz << cbsz) + abid
            assert found[lane] == float(a[source, row].double() @ b[block, column].double()), (register, lane)


def test_scales_of_blocks_of_32() -> None:
    rng = np.random.default_rng(2)
    registers = Registers()
    a, b = (matrix(rng, 16, 128, "fp8", "gfx950")[None] for _ in range(2))
    fill(registers, 0, a, 16, 1)
    fill(registers, 8, b, 16, 1)
    exponents = rng.integers(-3, 4, (2, 64))
    for number in (0, 1):
        registers.vector(16 + number, [int(127 + one) << 8 for one in exponents[number]])
    line = (
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[0:7], v[8:15], 0, v16, v17 op_sel:[1,1,0] op_sel_hi:[0,0,0]"
    )
    machine(line, "gfx950")._steps[0](registers.group)
    scaled = []
    for number, values in enumerate((a, b)):
        factors = np.repeat(2.0 ** exponents[number].reshape(4, 16).T, 32, axis=1)  # row, k
        scaled.append(values[0].double().numpy() * factors)
    product = scaled[0] @ scaled[1].T
    found = np.array(registers.lanes(21), np.uint32).view(np.float32)
    assert found[35] == product[4 * 2 + 1, 3]
