"""Movement between lanes, and between lanes and scalars. Sections VOP1, VOP3 and DS of the ISA guides."""

from __future__ import annotations

from typing import Any

import numpy as np

from m3gen.emulator.group import LANES, U32, VECTORS, Array, Group, spread
from m3gen.emulator.operand import Operand
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import OTHER, VALU, Step, custom


def _register(operand: Operand) -> int:
    return operand.index + (VECTORS if operand.kind == "a" else 0)


@custom("v_readfirstlane_b32", unit=VALU, section="VOP1", signature="s : v")
def _first_lane(line: Instruction, machine: Any) -> Step:
    """Of the lowest lane of EXEC, of lane 0 where there is none."""
    read, target = reader(line.operands[1], "u32"), line.operands[0].index

    def step(group: Group) -> None:
        value = spread(read(group), group.size)
        first = group.mask.argmax(axis=1)
        group.put_scalar(target, value[np.arange(group.size), first][:, None])

    return step


@custom("v_readlane_b32", unit=VALU, section="VOP3", signature="s : v lane")
def _read_lane(line: Instruction, machine: Any) -> Step:
    read, lane, target = reader(line.operands[1], "u32"), reader(line.operands[2], "u32"), line.operands[0].index

    def step(group: Group) -> None:
        value = spread(read(group), group.size)
        which = np.broadcast_to(lane(group) & U32(63), (group.size, 1))[:, 0]
        group.put_scalar(target, value[np.arange(group.size), which][:, None])

    return step


@custom("v_writelane_b32", unit=VALU, section="VOP3", signature="v : s lane")
def _write_lane(line: Instruction, machine: Any) -> Step:
    """EXEC does not matter."""
    read, lane, target = reader(line.operands[1], "u32"), reader(line.operands[2], "u32"), line.operands[0].index

    def step(group: Group) -> None:
        group.v[target] = np.where((lane(group) & U32(63)) == LANES, read(group), group.v[target])

    return step


@custom(
    "v_accvgpr_read_b32",
    "v_accvgpr_write_b32",
    "v_accvgpr_mov_b32",
    unit=VALU,
    section="VOP3P",
    signature="u32 : u32",
)
def _accumulator(line: Instruction, machine: Any) -> Step:
    read, target = reader(line.operands[1], "u32"), _register(line.operands[0])
    return lambda group: group.put(target, read(group))


@custom("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32", unit=VALU, section="VOP3", signature="u32 : u32 u32")
def _count_below(line: Instruction, machine: Any) -> Step:
    """Bits of a mask below the lane, plus an addend; the halves of the mask count in turn."""
    lane = LANES if "_lo_" in line.mnemonic else LANES - 32
    below = np.array([(1 << min(max(int(one), 0), 32)) - 1 for one in lane], np.uint64).astype(U32)
    mask, addend, target = reader(line.operands[1], "u32"), reader(line.operands[2], "u32"), line.operands[0].index

    def step(group: Group) -> None:
        group.put(target, np.bitwise_count(mask(group) & below).astype(U32) + addend(group))

    return step


@custom(
    "v_permlane32_swap_b32",
    "v_permlane16_swap_b32",
    unit=VALU,
    section="VOP1 (CDNA4)",
    signature="u32 u32 : u32 u32",
)
def _swap(line: Instruction, machine: Any) -> Step:
    """The upper half (of 64 lanes, or of each 32) of the first register against the lower half of the second."""
    width = 32 if "32_swap" in line.mnemonic else 16
    a, b = line.operands[0].index, line.operands[1].index
    upper = LANES // width % 2 == 1
    from_b, from_a = np.where(upper, LANES - width, LANES), np.where(upper, LANES, LANES + width)

    def step(group: Group) -> None:
        first, second = group.whole(a), group.whole(b)
        group.put(a, np.where(upper, second[:, from_b], first))
        group.put(b, np.where(upper, second, first[:, from_a % 64]))

    return step


@custom("v_swap_b32", unit=VALU, section="VOP1", signature="u32 u32 : u32 u32")
def _exchange(line: Instruction, machine: Any) -> Step:
    a, b = line.operands[0].index, line.operands[1].index

    def step(group: Group) -> None:
        first, second = group.whole(a), group.whole(b)
        group.put(a, second)
        group.put(b, first)

    return step


@custom("v_nop", unit=OTHER, section="VOP1")
def _nothing(line: Instruction, machine: Any) -> Step:
    return lambda group: None


def swizzled(offset: int) -> Array:
    """ds_swizzle_b32: the lane that each lane reads (DS, "DS_SWIZZLE_B32"). `ValueError` for a rotation or an FFT."""
    if offset >= 0xC000:
        raise ValueError(f"swizzle {offset:#x}")
    if offset & 0x8000:
        quad = [(offset >> (2 * lane)) & 3 for lane in range(4)]
        return LANES // 4 * 4 + np.array(quad)[LANES % 4]
    keep, flip, change = offset & 0x1F, (offset >> 5) & 0x1F, (offset >> 10) & 0x1F
    return LANES // 32 * 32 + (((LANES % 32) & keep | flip) ^ change)
