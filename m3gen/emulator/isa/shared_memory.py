"""LDS instructions. Section DS of the ISA guides. A wave's come in order, whenever the waits allow."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.group import I32, I64, U32, VECTORS, Array, Group, Pending, spread
from m3gen.emulator.isa.lanes import swizzled
from m3gen.emulator.operand import Operand
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import LDS, Step, custom

_NAME = re.compile(r"ds_(read|write)(2)?(st64)?_([biu])(\d+)(_d16)?(_hi)?")
_WIDTHS = ("b32", "b64", "b96", "b128")
_SMALL = ("u8", "i8", "u16", "i16", "u8_d16", "u8_d16_hi", "i8_d16", "i8_d16_hi", "u16_d16", "u16_d16_hi")


def _register(operand: Operand) -> int:
    """Of `Group.v`: the vector registers, then the accumulation registers, either of which any access may name."""
    return operand.index + (VECTORS if operand.kind == "a" else 0)


def _offset(line: Instruction, name: str = "offset") -> int:
    return int(str(line.modifiers.get(name, 0)))


def _offsets(line: Instruction, width: int, two: bool, wide: bool) -> list[int]:
    if not two:
        return [_offset(line)]
    unit = width * (64 if wide else 1)
    return [_offset(line, "offset0") * unit, _offset(line, "offset1") * unit]


def _addresses(base: Array, group_size: int) -> Array:
    return np.broadcast_to(base, (group_size, 64)).astype(I64)


@custom(
    *(f"ds_read_{name}" for name in (*_WIDTHS, *_SMALL)),
    *(f"ds_read2{wide}_b{bits}" for wide in ("", "st64") for bits in (32, 64)),
    unit=LDS,
    section="DS",
    signature="v : address",
)
def _read(line: Instruction, machine: Any) -> Step:
    match = _NAME.fullmatch(line.mnemonic)
    assert match is not None
    two, wide, kind, bits, half, high = match[2], match[3], match[4], int(match[5]), match[6], match[7]
    width = bits // 8
    offsets = _offsets(line, width, bool(two), bool(wide))
    base, target = reader(line.operands[1], "u32"), line.operands[0]
    count = max(1, width // 4)
    writes = Group.bit(target.kind, target.index, count * len(offsets))
    first = _register(target)

    def complete(group: Group, address: Array, mask: Array) -> None:
        before = group.enter(mask)
        for number, offset in enumerate(offsets):
            words = machine.read_shared(group, line, address + offset, mask, width)
            if kind != "b":
                words = _extended(words, kind, bits)
            for part in range(count):
                value = np.ascontiguousarray(words[:, :, part])
                register = first + number * count + part
                if half:
                    old = group.v[register]
                    low = (value & U32(0xFFFF)) | (old & U32(0xFFFF0000))
                    value = (value << U32(16)) | (old & U32(0xFFFF)) if high else low
                group.put(register, value)
        group.mask, group.full = before

    def step(group: Group) -> None:
        address = _addresses(base(group), group.size)
        machine.issue(group, group.lgkm, Pending(complete, (address, group.mask), writes))

    return step


def _extended(words: Array, kind: str, bits: int) -> Array:
    value = words & U32((1 << bits) - 1)
    if kind == "i":
        up = U32(32 - bits)
        value = ((value << up).view(I32) >> I32(32 - bits)).view(U32)
    return value


@custom(
    *(f"ds_write_{name}" for name in (*_WIDTHS, "b8", "b16", "b8_d16_hi", "b16_d16_hi")),
    *(f"ds_write2{wide}_b{bits}" for wide in ("", "st64") for bits in (32, 64)),
    unit=LDS,
    section="DS",
    signature=": address v",
)
def _write(line: Instruction, machine: Any) -> Step:
    match = _NAME.fullmatch(line.mnemonic)
    assert match is not None
    two, wide, bits, high = match[2], match[3], int(match[5]), bool(match[7])
    width = bits // 8
    offsets = _offsets(line, width, bool(two), bool(wide))
    base, sources = reader(line.operands[0], "u32"), line.operands[1:]
    count = max(1, width // 4)
    firsts = [_register(source) for source in sources]

    def complete(group: Group, address: Array, mask: Array, *data: Array) -> None:
        for number, offset in enumerate(offsets):
            words = np.stack(data[number * count : (number + 1) * count], axis=2)
            machine.write_shared(group, line, address + offset, mask, words, width)

    def step(group: Group) -> None:
        address = _addresses(base(group), group.size)
        data = [
            spread(group.v[first + part] >> U32(16) if high else group.v[first + part], group.size)
            for first in firsts
            for part in range(count)
        ]
        machine.issue(group, group.lgkm, Pending(complete, (address, group.mask, *data)))

    return step


@custom("ds_read_b64_tr_b16", "ds_read_b64_tr_b8", unit=LDS, section="DS (CDNA4)", signature="2 x v : address")
def _read_transposed(line: Instruction, machine: Any) -> Step:
    """Each 16 lanes read a 64-bit piece each, of a matrix whose rows are 16 elements long (b16) or 16 (b8), and get
    columns of it."""
    base, first, offset = reader(line.operands[1], "u32"), _register(line.operands[0]), _offset(line)
    writes = Group.bit("v", first, 2)
    elements = 4 if line.mnemonic.endswith("b16") else 8
    kind: Any = np.uint16 if elements == 4 else np.uint8
    lane, element = np.arange(16)[:, None], np.arange(elements)[None, :]
    # 16 lanes hold 4 (b16) or 8 (b8) rows of 16 elements, 4 or 2 lanes a row.
    per_row = 16 // elements
    from_lane, from_element = element * per_row + lane // elements, lane % elements + 0 * element

    def complete(group: Group, address: Array, mask: Array) -> None:
        words = machine.read_shared(group, line, address + offset, mask, 8)
        pieces = np.ascontiguousarray(words).view(kind).reshape(group.size, 4, 16, elements)
        turned = np.ascontiguousarray(pieces[:, :, from_lane, from_element])
        out = turned.reshape(group.size, 64, elements).view(U32)
        before = group.enter(mask)
        for part in (0, 1):
            group.put(first + part, np.ascontiguousarray(out[:, :, part]))
        group.mask, group.full = before

    def step(group: Group) -> None:
        address = _addresses(base(group), group.size)
        machine.issue(group, group.lgkm, Pending(complete, (address, group.mask), writes))

    return step


@custom("ds_bpermute_b32", "ds_permute_b32", unit=LDS, section="DS", signature="v : address v")
def _permute(line: Instruction, machine: Any) -> Step:
    """Lanes read from, or write to, the lane that an address names; a lane outside EXEC gives 0."""
    base, data = reader(line.operands[1], "u32"), reader(line.operands[2], "u32")
    target, offset = _register(line.operands[0]), _offset(line)
    pulls = line.mnemonic == "ds_bpermute_b32"

    def complete(group: Group, result: Array, mask: Array) -> None:
        before = group.enter(mask)
        group.put(target, result)
        group.mask, group.full = before

    def step(group: Group) -> None:
        lane = ((spread(base(group), group.size) + U32(offset)) >> U32(2)) & U32(63)
        value = spread(data(group), group.size)
        value = np.where(group.mask, value, U32(0))
        if pulls:
            result = np.take_along_axis(value, lane.astype(I64), axis=1)
        else:
            result = np.zeros((group.size, 64), U32)
            rows, lanes = np.nonzero(group.mask)
            result[rows, lane[rows, lanes]] = value[rows, lanes]
        machine.issue(group, group.lgkm, Pending(complete, (result, group.mask), Group.bit("v", target)))

    return step


@custom("ds_swizzle_b32", unit=LDS, section="DS", signature="v : v")
def _swizzle(line: Instruction, machine: Any) -> Step:
    data, target = reader(line.operands[1], "u32"), _register(line.operands[0])
    try:
        lane = swizzled(_swizzle_offset(line.modifiers.get("offset", 0)))
    except ValueError as error:
        raise UnknownInstruction(f"{error} is not known, {line.where}") from None

    def complete(group: Group, result: Array, mask: Array) -> None:
        before = group.enter(mask)
        group.put(target, result)
        group.mask, group.full = before

    def step(group: Group) -> None:
        value = np.where(group.mask, spread(data(group), group.size), U32(0))
        machine.issue(group, group.lgkm, Pending(complete, (value[:, lane], group.mask), Group.bit("v", target)))

    return step


_SWIZZLE = re.compile(r"swizzle\((\w+),(.*)\)")
_BITS = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}  # and, or, xor


def _swizzle_offset(text: object) -> int:
    """The number that LLVM prints as a macro (LLVM, "Syntax of AMDGPU Instruction Modifiers", section "swizzle
    pattern"). `ValueError` for what is none."""
    if isinstance(text, int):
        return text
    match = _SWIZZLE.fullmatch(str(text))
    if match is None:
        raise ValueError(f"the swizzle {text}")
    if match[1] == "BITMASK_PERM":
        masks = [sum(_BITS[one][n] << 4 - at for at, one in enumerate(match[2].strip('"'))) for n in range(3)]
        return masks[0] | masks[1] << 5 | masks[2] << 10
    numbers = [int(one) for one in match[2].split(",")]
    size = numbers[0]
    if match[1] == "QUAD_PERM":
        return 0x8000 | sum(lane << 2 * at for at, lane in enumerate(numbers))
    if size not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"the swizzle {text}")
    if match[1] == "SWAP":
        return 0x1F | size << 10
    if match[1] == "REVERSE":
        return 0x1F | size - 1 << 10
    if match[1] == "BROADCAST":
        return 0x20 - size | numbers[1] << 5
    raise ValueError(f"the swizzle {text}")


_ADDS: dict[str, Callable[[int, int], int]] = {
    "add_u32": lambda old, new: old + new,
    "sub_u32": lambda old, new: old - new,
    "max_u32": max,
    "min_u32": min,
    "or_b32": lambda old, new: old | new,
    "and_b32": lambda old, new: old & new,
    "xor_b32": lambda old, new: old ^ new,
}


@custom(
    *(f"ds_{name}" for name in _ADDS),
    *(f"ds_{name.replace('_', '_rtn_')}" for name in _ADDS),
    unit=LDS,
    section="DS",
    signature="v : address v",
)
def _atomic(line: Instruction, machine: Any) -> Step:
    """Lane after lane."""
    returns = "_rtn_" in line.mnemonic
    meaning = _ADDS[line.mnemonic.removeprefix("ds_").replace("_rtn", "")]
    operands = line.operands[1:] if returns else line.operands
    base, data, offset = reader(operands[0], "u32"), reader(operands[1], "u32"), _offset(line)
    target = _register(line.operands[0]) if returns else 0
    writes = Group.bit("v", target) if returns else 0

    def complete(group: Group, address: Array, value: Array, mask: Array) -> None:
        machine.note_shared(group, line, address, mask, 4, write=True, atomic=True)
        old = np.zeros((group.size, 64), U32)
        for wave, lane in zip(*np.nonzero(mask), strict=True):
            only = np.zeros_like(mask)
            only[wave, lane] = True
            before = machine.read_shared(group, line, address, only, 4)[wave, lane, 0]
            old[wave, lane] = before
            new = np.zeros((group.size, 64, 1), U32)
            new[wave, lane, 0] = meaning(int(before), int(value[wave, lane])) & 0xFFFFFFFF
            machine.write_shared(group, line, address, only, new, 4)
        if returns:
            before_mask = group.enter(mask)
            group.put(target, old)
            group.mask, group.full = before_mask

    def step(group: Group) -> None:
        address = _addresses(base(group), group.size) + offset
        value = spread(data(group), group.size)
        machine.issue(group, group.lgkm, Pending(complete, (address, value, group.mask), writes))

    return step
