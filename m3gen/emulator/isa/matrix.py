"""The matrix unit. Section VOP3P-MAI of the ISA guides; which lane holds what is the layout of AMD's matrix
instruction calculator (github.com/ROCm/amd_matrix_instruction_calculator).

D[i, j] = sum over k of A[i, k] B[k, j] + C[i, j], here with exact products, summed in double precision and rounded
once; the hardware rounds more often, within the usual error of fp32 sums.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.formats import of_arch
from m3gen.emulator.group import F32, F64, I32, I64, LANES, U32, VECTORS, Array, Group, spread
from m3gen.emulator.operand import Operand
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import MATRIX, Step, custom

_NAME = re.compile(r"v_mfma_(?:scale_)?(f32|f64|i32)_(\d+)x(\d+)x(\d+)_(?:(\d+)b_)?(\w+)")
_BITS = {"bf16": 16, "f16": 16, "fp8": 8, "bf8": 8, "fp4": 4, "f32": 32, "xf32": 32, "f64": 64, "i8": 8}
_F8F6F4 = {0: "fp8", 1: "bf8", 4: "fp4"}
_FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # e2m1; the fourth bit is the sign
_RESULTS: dict[str, Any] = {"f32": F32, "f64": F64, "i32": I32}


@dataclass(frozen=True, slots=True)
class Shape:
    """`blocks` independent products; `a` and `b` types of the sources. Each `shared` blocks take their A from one of
    them, the one that `source` numbers (cbsz is log2 of `shared`, abid is `source`)."""

    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    result: str
    shared: int = 1
    source: int = 0

    @property
    def groups(self) -> int:
        """Groups of lanes that share the k of one row."""
        return 64 // (self.m * self.blocks)

    def registers(self, kind: str) -> int:
        """Of a source of that type."""
        return max(1, self.k // self.groups * _BITS[kind] // 32)

    @property
    def results(self) -> int:
        """Registers of a result."""
        return self.m * self.n * self.blocks // 64 * _BITS.get(self.result, 32) // 32


def shape_of(line: Instruction) -> Shape:
    """From the mnemonic, and for f8f6f4 from the formats that cbsz and blgp name."""
    match = _NAME.fullmatch(line.mnemonic)
    if match is None:
        raise UnknownInstruction(f"the emulator does not know {line.mnemonic}, {line.where}")
    result, m, n, k, blocks, kinds = match.groups()
    a, _, b = kinds.partition("_")
    shared, source = 1, 0
    if a == "f8f6f4":
        names = [int(str(line.modifiers.get(name, 0))) for name in ("cbsz", "blgp")]
        if any(name not in _F8F6F4 for name in names):
            raise UnknownInstruction(f"6-bit floats are not known, {line.where}")
        a, b = (_F8F6F4[name] for name in names)
    elif line.modifiers.get("blgp"):
        raise UnknownInstruction(f"permutations of B's lanes are not known, {line.where}")
    else:
        shared, source = 1 << int(str(line.modifiers.get("cbsz", 0))), int(str(line.modifiers.get("abid", 0)))
        if shared > int(blocks or 1) or source >= shared:
            raise UnknownInstruction(f"no broadcast of block {source} to {shared} blocks is known, {line.where}")
    if a not in _BITS:
        raise UnknownInstruction(f"the emulator does not know {line.mnemonic}, {line.where}")
    return Shape(int(m), int(n), int(k), int(blocks or 1), a, b or a, result, shared, source)


@cache
def result_rows(m: int, blocks: int, result: str) -> tuple[Array, Array, Array]:
    """Block, row and column of each (lane, number) of a result: int [64, results]."""
    registers = m * m * blocks // 64
    lane, register = LANES[:, None], np.arange(registers)[None, :]
    if result == "f64":
        return 0 * lane + 0 * register, lane // m + 4 * register, lane % m + 0 * register
    if m == 4:
        return lane // 4 + 0 * register, register + 0 * lane, lane % 4 + 0 * register
    per_block = registers // blocks
    block, register = register // per_block, register % per_block
    row = 4 * (lane // m) + register if m == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
    return block + 0 * lane, row + 0 * lane, lane % m + 0 * register


def _elements(words: Array, kind: str, arch: str) -> Array:
    """uint32 [..., registers] to values, float64 [..., elements], the first in the lowest bits."""
    words = np.ascontiguousarray(words)
    if kind == "f64":
        return words.view(F64)
    if kind == "fp4":
        bytes_ = words.view(np.uint8)
        codes = np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(*bytes_.shape[:-1], -1)
        return np.where(codes >> 3, -_FP4[codes & 7], _FP4[codes & 7])
    if kind == "bf16":
        return (words.view(np.uint16).astype(U32) << U32(16)).view(F32).astype(F64)
    if kind == "f16":
        return words.view(np.float16).astype(F64)
    if kind == "f32":
        return words.view(F32).astype(F64)
    if kind == "xf32":  # 10 bits of mantissa are kept
        return (words & U32(0xFFFFE000)).view(F32).astype(F64)
    if kind == "i8":
        return words.view(np.int8).astype(F64)
    return of_arch(arch, kind).values[words.view(np.uint8)].astype(F64)


def _rows(values: Array, shape: Shape, kind: str) -> Array:
    """[size, 64, per lane] to [size, blocks, m, k]: a lane holds neighbouring k of one row of one block; of the 8-bit
    floats of f8f6f4 16 neighbours, and 16 that are as far on as all lanes of the row together hold."""
    size, _, each = values.shape
    if shape.m == 4:
        return values.reshape(size, shape.blocks, 4, each)
    run = 16 if each == 32 and _BITS[kind] == 8 else each
    split = values.reshape(size, shape.groups, shape.blocks, shape.m, each // run, run)
    return split.transpose(0, 2, 3, 4, 1, 5).reshape(size, shape.blocks, shape.m, shape.groups * each)


def _stacked(group: Group, operand: Operand, count: int) -> Array:
    """Registers of an operand, uint32 [size, 64, count]."""
    first = operand.index + (VECTORS if operand.kind == "a" else 0)
    return np.stack([spread(group.v[first + n], group.size) for n in range(count)], axis=2)


def _source(group: Group, operand: Operand, shape: Shape, kind: str, arch: str) -> Array:
    """float64 [size, blocks, rows, k]."""
    return _rows(_elements(_stacked(group, operand, shape.registers(kind)), kind, arch), shape, kind)


def _accumulate(group: Group, shape: Shape, target: Operand, product: Array, c: Operand) -> None:
    """`product` float64 [size, blocks, m, n], plus C, into the registers of a result."""
    found = product[(slice(None), *result_rows(shape.m, shape.blocks, shape.result))]
    kind = _RESULTS[shape.result]
    if c.kind in "va":
        addend = _stacked(group, c, shape.results).view(kind)
    else:
        addend = reader(c, shape.result)(group)[..., None]
    if shape.result == "i32":  # wraps
        total = (found.astype(I64) + addend).astype(I32)
    else:
        total = (found + addend).astype(kind)
    columns = np.ascontiguousarray(total.view(U32).transpose(2, 0, 1))
    first = target.index + (VECTORS if target.kind == "a" else 0)
    for number in range(shape.results):
        group.v[first + number] = columns[number]


def names() -> list[str]:
    """What Triton emits for either arch, and its neighbours."""
    shapes = [f"v_mfma_f32_{s}_{t}" for s in ("16x16x16", "32x32x8") for t in ("bf16", "f16")]
    shapes += [f"v_mfma_f32_{s}_{t}" for s in ("16x16x32", "32x32x16") for t in ("bf16", "f16")]
    shapes += [
        f"v_mfma_f32_{s}_{a}_{b}" for s in ("16x16x32", "32x32x16") for a in ("fp8", "bf8") for b in ("fp8", "bf8")
    ]
    shapes += [f"v_mfma_f32_{s}_f8f6f4" for s in ("16x16x128", "32x32x64")]
    shapes += ["v_mfma_f32_16x16x4_f32", "v_mfma_f32_32x32x2_f32", "v_mfma_f32_4x4x1_16b_f32"]
    shapes += ["v_mfma_f64_16x16x4_f64"]
    shapes += ["v_mfma_f32_16x16x8_xf32", "v_mfma_f32_32x32x4_xf32"]
    shapes += [f"v_mfma_f32_4x4x4_16b_{t}" for t in ("bf16", "f16")]
    shapes += [
        "v_mfma_i32_16x16x32_i8",
        "v_mfma_i32_32x32x16_i8",
        "v_mfma_i32_16x16x64_i8",
        "v_mfma_i32_32x32x32_i8",
    ]
    return shapes


@custom(*names(), unit=MATRIX, section="VOP3P-MAI", cycles=16, signature="d : a b c")
def _mfma(line: Instruction, machine: Any) -> Step:
    """EXEC does not matter to the matrix unit."""
    shape, arch = shape_of(line), machine.arch
    target, a, b, c = line.operands[:4]
    taken = np.arange(shape.blocks) // shape.shared * shape.shared + shape.source

    def step(group: Group) -> None:
        left, right = _source(group, a, shape, shape.a, arch), _source(group, b, shape, shape.b, arch)
        if shape.shared > 1:
            left = left[:, taken]
        _accumulate(group, shape, target, left @ right.transpose(0, 1, 3, 2), c)

    return step


@custom(
    "v_mfma_scale_f32_16x16x128_f8f6f4",
    "v_mfma_scale_f32_32x32x64_f8f6f4",
    unit=MATRIX,
    section="VOP3P-MAI (CDNA4)",
    cycles=16,
    signature="d : a b c scale_a scale_b",
)
def _scaled_mfma(line: Instruction, machine: Any) -> Step:
    """Each 32 neighbouring k of a row have a power of two of their own, a byte biased by 127 (255: NaN), that op_sel
    names: lane `row + m * n` holds that of the n-th 32."""
    shape, arch = shape_of(line), machine.arch
    target, a, b, c = line.operands[:4]
    scales = [reader(operand, "u32") for operand in line.operands[4:6]]
    low, high = line.modifiers.get("op_sel", (0, 0)), line.modifiers.get("op_sel_hi", (0, 0))
    bytes_ = [int(low[n]) + 2 * int(high[n]) for n in (0, 1)]  # type: ignore[index]

    def scaled(group: Group, operand: Operand, kind: str, number: int) -> Array:
        word = spread(scales[number](group), group.size)
        byte = ((word >> U32(8 * bytes_[number])) & U32(0xFF)).astype(I32)
        factor = np.where(byte == 255, np.nan, np.ldexp(1.0, byte - 127))
        of_row = factor.reshape(group.size, 1, shape.groups, shape.m).transpose(0, 1, 3, 2)
        return _source(group, operand, shape, kind, arch) * np.repeat(of_row, 32, axis=3)

    def step(group: Group) -> None:
        left, right = scaled(group, a, shape.a, 0), scaled(group, b, shape.b, 1)
        _accumulate(group, shape, target, left @ right.transpose(0, 1, 3, 2), c)

    return step
