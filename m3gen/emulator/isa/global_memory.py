"""Memory instructions: scalar loads, buffer, global, flat and scratch. Sections SMEM, MUBUF and FLAT of the ISA
guides. A wave's vector accesses come in order, whenever the waits allow; scalar loads come in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.group import F32, I32, I64, LANES, U32, U64, VECTORS, Array, Group, Pending, spread
from m3gen.emulator.operand import M0, Operand
from m3gen.emulator.operands import reader
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import SMEM, VMEM, Step, custom

_SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64}
_SCALAR_SIZES = ("dword", "dwordx2", "dwordx4", "dwordx8", "dwordx16")
_UNBOUNDED = 1 << 62
_SMALL = {"ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2}
_LOADS = (
    *("dword", "dwordx2", "dwordx3", "dwordx4", "ubyte", "sbyte", "ushort", "sshort"),
    *("ubyte_d16", "ubyte_d16_hi", "sbyte_d16", "sbyte_d16_hi", "short_d16", "short_d16_hi"),
)
_STORES = ("dword", "dwordx2", "dwordx3", "dwordx4", "byte", "short", "byte_d16_hi", "short_d16_hi")
_KINDS = ("buffer", "global", "flat", "scratch")


@custom(
    *(f"s_load_{size}" for size in _SCALAR_SIZES),
    *(f"s_buffer_load_{size}" for size in _SCALAR_SIZES),
    unit=SMEM,
    section="SMEM",
    signature="s : base offset",
)
def _scalar_load(line: Instruction, machine: Any) -> Step:
    """Of a buffer, words past num_records are 0. An offset in a register is unsigned, one in the text signed."""
    size = _SIZES[line.mnemonic.rpartition("_")[2]]
    target, base_operand = line.operands[:2]
    base, first = reader(base_operand, "u64"), target.index
    offset, immediate = None, _offset(line)
    if len(line.operands) > 2:
        if line.operands[2].kind == "int":
            immediate += int(line.operands[2].value)
        else:
            offset = reader(line.operands[2], "u32")
    is_buffer = line.mnemonic.startswith("s_buffer")
    keep = U64(0xFFFFFFFFFFFF if is_buffer else 0xFFFFFFFFFFFFFFFF)

    def complete(group: Group, address: Array, room: Array) -> None:
        words = np.zeros((group.size, size // 4), U32)
        width = size if (room >= size).all() else 4
        for at in range(0, size, width):
            inside = room >= at + width
            machine.note_memory(group, line, address + at, inside, width, reads=True)
            found = machine.load(group, line, address[inside] + at, width)
            words[inside[:, 0], at // 4 : (at + width) // 4] = found.view(U32)
        for number in range(size // 4):
            group.s[first + number] = np.ascontiguousarray(words[:, number : number + 1])

    def step(group: Group) -> None:
        distance = np.full((group.size, 1), immediate, I64)
        if offset is not None:
            distance = distance + offset(group).astype(I64)
        address = ((base(group) & keep).astype(I64) + distance) & ~I64(3)
        records = group.s[base_operand.index + 2].astype(I64) if is_buffer else _UNBOUNDED
        room = records - (distance & ~I64(3))
        writes = Group.bit("s", first, size // 4)
        machine.issue(group, group.lgkm, Pending(complete, (address, room), writes, ordered=False))

    return step


# addresses


Address = Callable[[Group], tuple[Array, Array]]
"""Addresses, and the bytes from there to the end of the buffer (without a buffer many): int64 [size, 64] each."""


def _offset(line: Instruction) -> int:
    return int(str(line.modifiers.get("offset", 0)))


def _buffer(line: Instruction, operands: tuple[Operand, ...]) -> Address:
    """vaddr, srsrc, soffset. What passes num_records is not accessed, word by word: loads give 0."""
    vaddr, resource, soffset = operands
    if line.modifiers.get("idxen"):
        raise UnknownInstruction(f"indexed buffers are not known, {line.where}")
    offset = reader(vaddr, "u32") if line.modifiers.get("offen") else None
    scalar, immediate, first = reader(soffset, "u32"), _offset(line), resource.index

    def address(group: Group) -> tuple[Array, Array]:
        base = (group.scalar64(first) & U64(0xFFFFFFFFFFFF)).astype(I64)
        inside = np.full((1, 64), immediate, I64)
        if offset is not None:
            inside = inside + offset(group).astype(I64)
        inside = inside + scalar(group).astype(I64)
        room = group.s[first + 2].astype(I64) - inside
        return spread(base + inside, group.size), spread(room, group.size)

    return address


def _global(line: Instruction, vaddr: Operand, base: Operand | None) -> Address:
    immediate = _offset(line)
    if base is not None and base.kind == "s":
        scalar, offset = reader(base, "u64"), reader(vaddr, "u32")

        def saddr(group: Group) -> tuple[Array, Array]:
            whole = scalar(group).astype(I64) + offset(group).astype(I64) + immediate
            return spread(whole, group.size), np.full((group.size, 64), _UNBOUNDED)

        return saddr
    pair = reader(vaddr, "u64")

    def address(group: Group) -> tuple[Array, Array]:
        whole = pair(group).view(I64) + immediate
        return spread(whole, group.size), np.full((group.size, 64), _UNBOUNDED)

    return address


def _scratch(line: Instruction, operands: tuple[Operand, ...]) -> Address:
    """A lane's own memory: a vector and a scalar offset, either of which may be off."""
    reads = [reader(operand, "u32") for operand in operands if operand.kind in "vs"]
    immediate = _offset(line)

    def address(group: Group) -> tuple[Array, Array]:
        whole = np.full((group.size, 64), immediate, I64)
        for read in reads:
            whole = whole + read(group).view(I32).astype(I64)
        return whole, np.full((group.size, 64), _UNBOUNDED)

    return address


def _parts(line: Instruction, kind: str, action: str, to_lds: bool) -> tuple[Operand | None, Any]:
    """The data operand, and the rest."""
    operands = line.operands
    if to_lds and action == "load":
        return None, operands
    if kind == "buffer" or action == "load":
        return operands[0], operands[1:]
    return operands[1], (operands[0], *operands[2:])


def _address(line: Instruction, kind: str, rest: tuple[Operand, ...]) -> Address:
    if kind == "buffer":
        return _buffer(line, rest)
    if kind == "scratch":
        return _scratch(line, rest)
    return _global(line, rest[0], rest[1] if len(rest) > 1 else None)


# loads and stores


@custom(
    *(f"{kind}_load_{size}" for kind in _KINDS for size in _LOADS),
    *(f"global_load_lds_{size}" for size in ("dword", "dwordx3", "dwordx4")),
    unit=VMEM,
    section="MUBUF, FLAT",
    signature="v : address",
)
def _load(line: Instruction, machine: Any) -> Step:
    kind, _, name = line.mnemonic.partition("_load_")
    to_lds = name.startswith("lds_") or bool(line.modifiers.get("lds"))
    name = name.removeprefix("lds_")
    size = _SIZES.get(name) or _SMALL[name.partition("_")[0]]
    target, rest = _parts(line, kind, "load", to_lds)
    address = _address(line, kind, tuple(rest))
    read = machine.load_scratch if kind == "scratch" else machine.load_lanes
    if target is None:
        return _load_to_lds(line, machine, address, size)
    first = target.index + (VECTORS if target.kind == "a" else 0)
    count = max(1, size // 4)
    writes = Group.bit(target.kind, target.index, count)
    signed, half, high = name[0] == "s" and size < 4 and name[1] in "bs", "_d16" in name, name.endswith("_hi")
    if name.startswith("short"):
        signed = False

    def complete(group: Group, where: Array, room: Array, mask: Array) -> None:
        words = _read(read, group, line, where, room, mask, size)
        before = group.enter(mask)
        if size < 4:
            value = words[:, :, 0]
            if signed:
                up = U32(32 - 8 * size)
                value = ((value << up).view(I32) >> I32(32 - 8 * size)).view(U32)
            if half:
                old = group.v[first]
                low = (value & U32(0xFFFF)) | (old & U32(0xFFFF0000))
                value = ((value & U32(0xFFFF)) << U32(16)) | (old & U32(0xFFFF)) if high else low
            group.put(first, value)
        else:
            columns = np.ascontiguousarray(words.transpose(2, 0, 1))
            for number in range(count):
                group.put(first + number, columns[number])
        group.mask, group.full = before

    def step(group: Group) -> None:
        where, room = address(group)
        machine.issue(group, group.vm, Pending(complete, (where, room, group.mask), writes))

    return step


def _read(read: Any, group: Group, line: Instruction, where: Array, room: Array, mask: Array, size: int) -> Array:
    """uint32 [size, 64, words]; 0 for words past the end of a buffer."""
    inside = room >= size
    if inside.all():
        whole: Array = read(group, line, where, mask, size)
        return whole
    if size > 4 and (mask & (room >= 4) & ~inside).any():
        parts = [read(group, line, where + n, mask & (room >= n + 4), 4) for n in range(0, size, 4)]
        return np.concatenate(parts, axis=2)
    found: Array = read(group, line, where, mask & inside, size)
    return found


def _load_to_lds(line: Instruction, machine: Any, address: Address, size: int) -> Step:
    """From memory into the LDS at M0 + lane * size, without registers."""
    if size < 4:
        raise UnknownInstruction(f"bytes and halves that go to the LDS are not known, {line.where}")
    lds_offset = LANES.astype(I64) * size

    def complete(group: Group, where: Array, room: Array, mask: Array, at: Array) -> None:
        words = _read(machine.load_lanes, group, line, where, room, mask, size)
        machine.write_shared(group, line, at + lds_offset, mask, words, size)

    def step(group: Group) -> None:
        where, room = address(group)
        start = (group.s[M0] & U32(0xFFFF if machine.arch == "gfx942" else 0x3FFFF)).astype(I64) + _offset(line)
        at = np.broadcast_to(start, (group.size, 1))
        machine.issue(group, group.vm, Pending(complete, (where, room, group.mask, at)))

    return step


@custom(
    *(f"{kind}_store_{size}" for kind in _KINDS for size in _STORES),
    unit=VMEM,
    section="MUBUF, FLAT",
    signature=": address v",
)
def _store(line: Instruction, machine: Any) -> Step:
    kind, _, name = line.mnemonic.partition("_store_")
    size = _SIZES.get(name) or _SMALL[name.partition("_")[0]]
    data, rest = _parts(line, kind, "store", to_lds=False)
    assert data is not None
    address = _address(line, kind, tuple(rest))
    write = machine.store_scratch if kind == "scratch" else machine.store_lanes
    first = data.index + (VECTORS if data.kind == "a" else 0)
    count, shift = max(1, size // 4), U32(16 if name.endswith("_hi") else 0)

    def complete(group: Group, where: Array, room: Array, mask: Array, *words: Array) -> None:
        inside = room >= size
        if size > 4 and (mask & ~inside).any():
            for number, word in enumerate(words):
                part = mask & (room >= 4 * number + 4)
                write(group, line, where + 4 * number, part, word[:, :, None], 4)
        else:
            write(group, line, where, mask & inside, np.stack(words, axis=2), size)

    def step(group: Group) -> None:
        where, room = address(group)
        words = [
            np.broadcast_to(
                group.v[first + number] >> shift if shift else group.v[first + number], (group.size, 64)
            )
            for number in range(count)
        ]
        machine.issue(group, group.vm, Pending(complete, (where, room, group.mask, *words)))

    return step


# atomics


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _float(value: int) -> Any:
    return np.array([value], U32).view(F32)[0]


def _bits(value: Any) -> int:
    return int(np.array([value], F32).view(U32)[0])


_INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda old, new, bits: new,
    "add": lambda old, new, bits: old + new,
    "sub": lambda old, new, bits: old - new,
    "umax": lambda old, new, bits: max(old, new),
    "umin": lambda old, new, bits: min(old, new),
    "smax": lambda old, new, bits: old if _signed(old, bits) >= _signed(new, bits) else new,
    "smin": lambda old, new, bits: old if _signed(old, bits) <= _signed(new, bits) else new,
    "and": lambda old, new, bits: old & new,
    "or": lambda old, new, bits: old | new,
    "xor": lambda old, new, bits: old ^ new,
    "inc": lambda old, new, bits: 0 if old >= new else old + 1,
    "dec": lambda old, new, bits: new if old == 0 or old > new else old - 1,
    "add_f32": lambda old, new, bits: _bits(_float(old) + _float(new)),
}
_ATOMICS = [f"{kind}_atomic_{name}" for kind in ("buffer", "global", "flat") for name in _INTEGER]
_ATOMICS += [f"{name}_x2" for name in _ATOMICS if not name.endswith("f32")]
_SWAPS = [f"{kind}_atomic_cmpswap{wide}" for kind in ("buffer", "global", "flat") for wide in ("", "_x2")]


@custom(*_ATOMICS, *_SWAPS, unit=VMEM, section="MUBUF, FLAT", signature="v : address v")
def _atomic(line: Instruction, machine: Any) -> Step:
    """Lane after lane, workgroup after workgroup; with sc0 the value before comes back."""
    kind, _, name = line.mnemonic.partition("_atomic_")
    wide = name.endswith("_x2")
    meaning, size = _INTEGER.get(name.removesuffix("_x2")), 8 if wide else 4
    returns = bool(line.modifiers.get("sc0") or line.modifiers.get("glc"))
    operands = line.operands
    if kind == "buffer":
        data, rest, target = operands[0], operands[1:], operands[0]
    else:
        target = operands[0]
        operands = operands[1:] if returns else operands
        data, rest = operands[1], (operands[0], *operands[2:])
    address = _address(line, kind, tuple(rest))
    first, into = (one.index + (VECTORS if one.kind == "a" else 0) for one in (data, target))
    words = (1 if meaning else 2) * size // 4

    def change(old: int, given: list[int]) -> int:
        bits = 8 * size
        if meaning is not None:
            return meaning(old, given[0], bits) & ((1 << bits) - 1)
        new, expected = given  # of a compare and swap the new value comes first
        return new if old == expected else old

    def complete(group: Group, where: Array, active: Array, mask: Array, *data: Array) -> None:
        machine.note_memory(group, line, where, active, size, reads=True, writes=True)
        old = np.zeros((group.size, 64, size // 4), U32)
        for wave, lane in zip(*np.nonzero(active), strict=True):
            at = where[wave, lane][None]
            before = machine.load(group, line, at, size)
            parts = [np.array([word[wave, lane]], U32) for word in data]
            given = [
                int.from_bytes(b"".join(one.tobytes() for one in parts[n : n + size // 4]), "little")
                for n in range(0, words, size // 4)
            ]
            new = change(int.from_bytes(before.tobytes(), "little"), given)
            machine.store(group, line, at, np.frombuffer(new.to_bytes(size, "little"), np.uint8)[None])
            old[wave, lane] = before.view(U32)[0]
        if returns:
            before_mask = group.enter(mask)
            for number in range(size // 4):
                group.put(into + number, np.ascontiguousarray(old[:, :, number]))
            group.mask, group.full = before_mask

    def step(group: Group) -> None:
        where, room = address(group)
        given = [spread(group.v[first + number], group.size) for number in range(words)]
        writes = Group.bit("v", into, size // 4) if returns else 0
        machine.issue(
            group, group.vm, Pending(complete, (where, group.mask & (room >= size), group.mask, *given), writes)
        )

    return step
