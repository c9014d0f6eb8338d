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
from m3gen.emulator.group import F32, F64, I32, LANES, U32, VECTORS, Array, Group, spread
from m3gen.emulator.operand import Operand
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import MATRIX, Step, custom

_NAME = re.compile(r"v_mfma_(?:scale_)?(f32|i32)_(\d+)x(\d+)x(\d+)_(?:(\d+)b_)?(\w+)")
_BYTES = {"bf16": 2, "f16": 2, "fp8": 1, "bf8": 1, "f32": 4, "xf32": 4, "i8": 1}
# Cycles of 4 clocks ("passes") that one instruction holds the unit, by (M, bytes of an element's product): those
# that are not here take as many as its products need at the rate of its type (ISA guides, "MFMA dependency tables").
_F8F6F4 = {0: "fp8", 1: "bf8"}


@dataclass(frozen=True, slots=True)
class Shape:
    """`blocks` independent products; `a` and `b` types of the sources."""

    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    result: str

    @property
    def groups(self) -> int:
        """Groups of lanes that share the k of one row."""
        return 64 // (self.m * self.blocks)

    @property
    def registers(self) -> int:
        """Of one source."""
        return max(1, self.k // self.groups * _BYTES[self.a] // 4)

    @property
    def results(self) -> int:
        return self.m * self.n * self.blocks // 64


def shape_of(line: Instruction) -> Shape:
    """From the mnemonic, and for f8f6f4 from the formats that cbsz and blgp name."""
    match = _NAME.fullmatch(line.mnemonic)
    if match is None:
        raise UnknownInstruction(f"the emulator does not know {line.mnemonic}, {line.where}")
    result, m, n, k, blocks, kinds = match.groups()
    a, _, b = kinds.partition("_")
    if a == "f8f6f4":
        names = [int(str(line.modifiers.get(name, 0))) for name in ("cbsz", "blgp")]
        if any(name not in _F8F6F4 for name in names):
            raise UnknownInstruction(f"6-bit and 4-bit floats are not known, {line.where}")
        a, b = (_F8F6F4[name] for name in names)
    elif line.modifiers.get("cbsz") or line.modifiers.get("abid") or line.modifiers.get("blgp"):
        raise UnknownInstruction(f"broadcasts and lane permutations of a source are not known, {line.where}")
    if a not in _BYTES:
        raise UnknownInstruction(f"the emulator does not know {line.mnemonic}, {line.where}")
    return Shape(int(m), int(n), int(k), int(blocks or 1), a, b or a, result)


@cache
def result_rows(m: int, blocks: int) -> tuple[Array, Array, Array]:
    """Block, row and column of each (lane, register) of a result: int [64, registers]."""
    registers = m * m * blocks // 64
    lane, register = LANES[:, None], np.arange(registers)[None, :]
    if m == 4:
        return lane // 4 + 0 * register, register + 0 * lane, lane % 4 + 0 * register
    per_block = registers // blocks
    block, register = register // per_block, register % per_block
    row = 4 * (lane // m) + register if m == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
    return block + 0 * lane, row + 0 * lane, lane % m + 0 * register


def _elements(words: Array, kind: str, arch: str) -> Array:
    """uint32 [..., registers] to values, float64 [..., registers * elements each]."""
    words = np.ascontiguousarray(words)
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


def _rows(values: Array, shape: Shape) -> Array:
    """[size, 64, per lane] to [size, blocks, m, k]: a lane holds neighbouring k of one row of one block."""
    size, _, each = values.shape
    if shape.m == 4:
        return values.reshape(size, shape.blocks, 4, each)
    split = values.reshape(size, shape.groups, shape.blocks, shape.m, each)
    return split.transpose(0, 2, 3, 1, 4).reshape(size, shape.blocks, shape.m, shape.groups * each)


def _stacked(group: Group, operand: Operand, count: int) -> Array:
    """Registers of an operand, uint32 [size, 64, count]."""
    first = operand.index + (VECTORS if operand.kind == "a" else 0)
    return np.stack([spread(group.v[first + n], group.size) for n in range(count)], axis=2)


def multiply(shape: Shape, a: Array, b: Array, arch: str) -> Array:
    """The product in the layout of a result: float64 [size, 64, registers]; a, b uint32 [size, 64, registers]."""
    left, right = _rows(_elements(a, shape.a, arch), shape), _rows(_elements(b, shape.b, arch), shape)
    product = left @ right.transpose(0, 1, 3, 2)
    found: Array = product[(slice(None), *result_rows(shape.m, shape.blocks))]
    return found


def names() -> list[str]:
    """What Triton emits for either arch, and its neighbours."""
    shapes = [f"v_mfma_f32_{s}_{t}" for s in ("16x16x16", "32x32x8") for t in ("bf16", "f16")]
    shapes += [f"v_mfma_f32_{s}_{t}" for s in ("16x16x32", "32x32x16") for t in ("bf16", "f16")]
    shapes += [
        f"v_mfma_f32_{s}_{a}_{b}" for s in ("16x16x32", "32x32x16") for a in ("fp8", "bf8") for b in ("fp8", "bf8")
    ]
    shapes += [f"v_mfma_f32_{s}_f8f6f4" for s in ("16x16x128", "32x32x64")]
    shapes += ["v_mfma_f32_16x16x4_f32", "v_mfma_f32_32x32x2_f32", "v_mfma_f32_4x4x1_16b_f32"]
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
    first = target.index + (VECTORS if target.kind == "a" else 0)
    count, results = shape.registers, shape.results
    constant = None if c.kind in "va" else reader(c, "f32" if shape.result == "f32" else "i32")
    kind: Any = F32 if shape.result == "f32" else I32

    def step(group: Group) -> None:
        product = multiply(shape, _stacked(group, a, count), _stacked(group, b, count), arch)
        addend = constant(group)[..., None] if constant else _stacked(group, c, results).view(kind)
        total = (product + addend).astype(kind).view(U32)
        columns = np.ascontiguousarray(total.transpose(2, 0, 1))
        for number in range(results):
            group.v[first + number] = columns[number]

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
    """Each 32 elements of k of a row have a power of two of their own: a byte, biased by 127, of the lane that holds
    those elements; op_sel names the byte."""
    shape, arch = shape_of(line), machine.arch
    target, a, b, c = line.operands[:4]
    scales = [reader(operand, "u32") for operand in line.operands[4:6]]
    low, high = line.modifiers.get("op_sel", (0, 0)), line.modifiers.get("op_sel_hi", (0, 0))
    bytes_ = [int(low[n]) + 2 * int(high[n]) for n in (0, 1)]  # type: ignore[index]
    first = target.index + (VECTORS if target.kind == "a" else 0)
    constant = None if c.kind in "va" else reader(c, "f32")

    def scaled(group: Group, operand: Operand, kind: str, number: int) -> Array:
        values = _elements(_stacked(group, operand, shape.registers), kind, arch)
        word = spread(scales[number](group), group.size)
        exponent = ((word >> U32(8 * bytes_[number])) & U32(0xFF)).astype(I32) - 127
        return _rows(np.ldexp(values, exponent[..., None]), shape)

    def step(group: Group) -> None:
        product = scaled(group, a, shape.a, 0) @ scaled(group, b, shape.b, 1).transpose(0, 1, 3, 2)
        found = product[(slice(None), *result_rows(shape.m, shape.blocks))]
        addend = constant(group)[..., None] if constant else _stacked(group, c, shape.results).view(F32)
        total = (found + addend).astype(F32).view(U32)
        for number in range(shape.results):
            group.v[first + number] = np.ascontiguousarray(total[:, :, number])

    return step
