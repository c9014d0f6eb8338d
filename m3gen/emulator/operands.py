"""From the operands of a line to functions that read and write a group: types, signs, halves, DPP, SDWA, clamps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.group import F32, F64, I32, I64, LANES, U32, U64, VECTORS, Array, Group, spread
from m3gen.emulator.operand import VCC, Operand
from m3gen.emulator.program import Instruction

Read = Callable[[Group], Array]
Write = Callable[[Group, Array], None]

_VIEWS = {"u32": U32, "i32": I32, "f32": F32, "u64": U64, "i64": I64, "f64": F64}
_WIDE = ("u64", "i64", "f64")
_INTEGERS: dict[str, Any] = {"u32": U32, "i32": I32, "u16": np.uint16, "i16": np.int16}
_HALF = {"u16": np.uint16, "i16": np.int16, "f16": np.float16}
# 16-bit results clear the other half, but for these (CDNA3 ISA guide, the LEGACY forms of VOP3 beside them).
_KEEP_HALF = ("v_mad_u16", "v_fma_f16", "v_max3_f16", "v_min3_f16")
_SATURATE = (
    "v_add_u32",
    "v_sub_u32",
    "v_subrev_u32",
    "v_add_u16",
    "v_sub_u16",
    "v_mad_u16",
    "v_mad_legacy_u16",
    "v_mad_u32_u24",
    "v_mad_i32_i24",
)
_DPP = (
    "quad_perm",
    "row_shl",
    "row_shr",
    "row_ror",
    "row_mirror",
    "row_half_mirror",
    "row_bcast",
    "row_newbcast",
    "wave_shr",
)


def plain(line: Instruction, signature: str, meaning: Callable[..., Any]) -> Callable[[Group], None]:
    """What runs an instruction that is a function of its sources."""
    wanted, given = (part.split() for part in signature.split(":"))
    explicit = [kind for kind in given if kind[0] not in "@="]
    named = [kind for kind in wanted if kind != "scc"]
    if len(line.operands) != len(named) + len(explicit):
        raise UnknownInstruction(f"{line.mnemonic} has other operands than {signature!r}, {line.where}")
    shuffle, allowed = _dpp(line)
    reads = _sources(line, given, len(named), shuffle)
    writes = _destinations(line, wanted, allowed)
    finish = _finish(line, named)
    if line.modifiers.get("clamp") and named[0] in _INTEGERS:
        reads = [_wider(read) for read in reads]
    if len(writes) == 1:
        (write,) = writes

        def step(group: Group) -> None:
            write(group, finish(meaning(*[read(group) for read in reads])))

        return step

    def step_several(group: Group) -> None:
        results = meaning(*[read(group) for read in reads])
        for put, result in zip(writes, results, strict=True):
            put(group, result)

    return step_several


# sources


def _sources(
    line: Instruction, given: list[str], first: int, shuffle: Callable[[Group, Array], Array] | None
) -> list[Read]:
    reads: list[Read] = []
    at = first
    for kind in given:
        if kind[0] == "@":
            reads.append(_IMPLICIT[kind])
        elif kind[0] == "=":
            reads.append(reader(line.operands[0], kind[1:]))
        else:
            number = at - first
            reads.append(_source(line, line.operands[at], kind, number, shuffle if number == 0 else None))
            at += 1
    return reads


_IMPLICIT: dict[str, Read] = {
    "@scc": lambda g: g.scc,
    "@vcc": lambda g: g.lanes(VCC),
    "@exec": lambda g: g.mask,
}


def _source(
    line: Instruction, operand: Operand, kind: str, number: int, shuffle: Callable[[Group, Array], Array] | None
) -> Read:
    select = line.modifiers.get(f"src{number}_sel") if line.suffix == "sdwa" else None
    if kind in _HALF:
        return _half(line, operand, kind, number, select)
    if shuffle is None and select in (None, "DWORD"):
        return reader(operand, kind)
    raw = reader(_unsigned(operand), "u32")
    pick = _selector(str(select), operand.signed) if select not in (None, "DWORD") else None
    view = _VIEWS[kind]

    def read(group: Group) -> Array:
        value = raw(group)
        if shuffle is not None:
            value = shuffle(group, spread(value, group.size))
        if pick is not None:
            value = pick(value)
        return _signs(operand, value.view(view))

    return read


def _half(line: Instruction, operand: Operand, kind: str, number: int, select: Any) -> Read:
    """16 bits: the low half, the one that op_sel names, or what SDWA selects."""
    op_sel = line.modifiers.get("op_sel", (0, 0, 0, 0))
    high = isinstance(op_sel, tuple) and len(op_sel) > number and op_sel[number]
    if operand.kind == "float":
        bits = np.array([[operand.value]], np.float16)
        constant = bits.view(_HALF[kind])
        return lambda group: _signs(operand, constant)
    raw = reader(_unsigned(operand), "u32")
    pick = _selector(str(select), operand.signed) if select not in (None, "DWORD") else None
    shift, view = U32(16 if high else 0), _HALF[kind]

    def read(group: Group) -> Array:
        value = raw(group)
        value = value >> shift if pick is None else pick(value)
        return _signs(operand, value.astype(np.uint16).view(view))

    return read


def reader(operand: Operand, kind: str) -> Read:
    """What reads an operand as a type; arrays that broadcast to [size, 64], not to be written."""
    if kind == "lanes":
        return _lanes(operand)
    if kind in _WIDE:
        return _wide(operand, kind)
    view = _VIEWS[kind]
    if operand.kind in "va":
        index = operand.index + (VECTORS if operand.kind == "a" else 0)
        if view is U32 and not (operand.negated or operand.absolute):
            return lambda group: group.v[index]
        return lambda group: _signs(operand, group.v[index].view(view))
    if operand.kind == "s":
        index = operand.index
        return lambda group: _signs(operand, group.s[index].view(view))
    if operand.kind == "exec":
        half = operand.index
        return lambda group: ((group.exec64() >> U64(32 * half)) & U64(0xFFFFFFFF)).astype(U32).view(view)
    if operand.kind == "scc":
        return lambda group: group.scc.astype(U32).view(view)
    constant = _signs(operand, constant_bits(operand).view(view))
    return lambda group: constant


def constant_bits(operand: Operand) -> Array:
    """A number in the text as 32 bits, uint32 [1, 1]."""
    if operand.kind == "float":
        return np.array([[operand.value]], F32).view(U32)
    if operand.kind != "int":
        raise UnknownInstruction(f"an operand of kind {operand.kind!r} is no source")
    return np.array([[int(operand.value) & 0xFFFFFFFF]], U32)


def _wide(operand: Operand, kind: str) -> Read:
    view = _VIEWS[kind]
    if operand.kind in "va":
        first = operand.index + (VECTORS if operand.kind == "a" else 0)

        def read(group: Group) -> Array:
            low, high = group.v[first].astype(U64), group.v[first + 1].astype(U64)
            return _signs(operand, (low | (high << U64(32))).view(view))

        return read
    if operand.kind == "s":
        first = operand.index
        return lambda group: _signs(operand, group.scalar64(first).view(view))
    if operand.kind == "exec":
        return lambda group: group.exec64().view(view)
    if operand.kind == "float":
        constant = np.array([[operand.value]], F64).view(view)
    elif kind == "f64" and not -16 <= operand.value <= 64:  # a literal is the high half
        constant = np.array([[int(operand.value) << 32 & 0xFFFFFFFFFFFFFFFF]], U64).view(view)
    else:
        constant = np.array([[int(operand.value) & 0xFFFFFFFFFFFFFFFF]], U64).view(view)
    return lambda group: constant


def _lanes(operand: Operand) -> Read:
    if operand.kind == "s":
        first = operand.index
        return lambda group: group.lanes(first)
    if operand.kind == "exec":
        return lambda group: group.mask
    constant = np.full((1, 64), bool(operand.value))
    if operand.value not in (0, -1):
        raise UnknownInstruction(f"a mask of {operand.value}")
    return lambda group: constant


def _signs(operand: Operand, value: Array) -> Array:
    if operand.absolute:
        value = np.abs(value)
    return -value if operand.negated else value


def _unsigned(operand: Operand) -> Operand:
    return Operand(operand.kind, operand.index, operand.count, operand.value)


def _selector(name: str, signed: bool) -> Callable[[Array], Array]:
    """SDWA: a byte or a word of a source."""
    what, _, number = name.partition("_")
    bits = {"BYTE": 8, "WORD": 16}[what]
    shift, keep = U32(int(number) * bits), U32((1 << bits) - 1)
    if not signed:
        return lambda value: (value >> shift) & keep
    up = U32(32 - bits)
    return lambda value: ((((value >> shift) & keep) << up).view(I32) >> up.view(I32)).view(U32)


# destinations


def _destinations(line: Instruction, wanted: list[str], allowed: Callable[[Group], Array] | None) -> list[Write]:
    writes: list[Write] = []
    at = 0
    for kind in wanted:
        if kind == "scc":
            writes.append(_put_scc)
            continue
        writes.append(_destination(line, line.operands[at], kind, allowed))
        at += 1
    return writes


def _put_scc(group: Group, value: Array) -> None:
    group.scc = value


def _destination(
    line: Instruction, operand: Operand, kind: str, allowed: Callable[[Group], Array] | None
) -> Write:
    if kind == "lanes":
        return _lanes_writer(operand)
    if operand.kind in ("s", "exec"):
        return _scalar_writer(operand, kind)
    index = operand.index + (VECTORS if operand.kind == "a" else 0)
    if kind in _WIDE:
        return lambda group, value: group.put64(index, spread(value, group.size))
    if kind in _HALF:
        return _half_writer(line, index)
    select = line.modifiers.get("dst_sel", "DWORD") if line.suffix == "sdwa" else "DWORD"
    if select != "DWORD":
        return _sdwa_writer(index, str(select), str(line.modifiers.get("dst_unused", "UNUSED_PAD")))
    if allowed is not None:
        return lambda group, value: group.put_where(index, value, allowed(group))
    return lambda group, value: group.put(index, value)


def _lanes_writer(operand: Operand) -> Write:
    if operand.kind == "exec":
        return lambda group, value: group.set_exec(value & group.mask)
    first = operand.index
    return lambda group, value: group.put_lanes(first, value)


def _scalar_writer(operand: Operand, kind: str) -> Write:
    if operand.kind == "exec":
        if operand.count == 2:
            return lambda group, value: group.set_exec64(value.view(U64))
        shift = U64(32 * operand.index)

        def put_half(group: Group, value: Array) -> None:
            kept = group.exec64() & ~(U64(0xFFFFFFFF) << shift)
            group.set_exec64(kept | (value.view(U32).astype(U64) << shift))

        return put_half
    index = operand.index
    if kind in _WIDE:
        return lambda group, value: group.put_scalar64(index, value.view(U64))
    return lambda group, value: group.put_scalar(index, value.view(U32))


def _half_writer(line: Instruction, index: int) -> Write:
    """16-bit results clear the other half, or keep it; where op_sel says so they go into the high one and keep the
    low one."""
    keep = line.mnemonic in _KEEP_HALF
    op_sel, sources = line.modifiers.get("op_sel", ()), len(line.operands) - 1
    high = isinstance(op_sel, tuple) and len(op_sel) > sources and op_sel[sources]
    select = line.modifiers.get("dst_sel", "DWORD") if line.suffix == "sdwa" else "DWORD"
    if select not in ("DWORD", "WORD_0") or (
        select == "WORD_0" and line.modifiers.get("dst_unused") != "UNUSED_PAD"
    ):
        write = _sdwa_writer(index, str(select), str(line.modifiers.get("dst_unused", "UNUSED_PAD")))
        return lambda group, value: write(group, np.ascontiguousarray(value).view(np.uint16).astype(U32))

    def put(group: Group, value: Array) -> None:
        bits = np.ascontiguousarray(value).view(np.uint16).astype(U32)
        if high:
            bits = (bits << U32(16)) | (group.v[index] & U32(0xFFFF))
        elif keep:
            bits = bits | (group.v[index] & U32(0xFFFF0000))
        group.put(index, bits)

    return put


def _sdwa_writer(index: int, select: str, unused: str) -> Write:
    what, _, number = select.partition("_")
    bits = {"BYTE": 8, "WORD": 16, "DWORD": 32}[what]
    shift = U32(int(number or 0) * bits)
    keep = U32((1 << bits) - 1)

    def put(group: Group, value: Array) -> None:
        bits_ = (value.view(U32) & keep) << shift
        if unused == "UNUSED_PRESERVE":
            bits_ = bits_ | (group.v[index] & ~(keep << shift))
        elif unused == "UNUSED_SEXT":
            bits_ = ((value.view(U32) << U32(32 - bits)).view(I32) >> I32(32 - bits - int(shift))).view(U32)
        group.put(index, bits_)

    return put


def _finish(line: Instruction, named: list[str]) -> Callable[[Any], Any]:
    """clamp: floats to 0 ... 1, integers that were computed in 64 bits to their range. The other output modifiers are
    ignored in IEEE mode and where denormals are kept, which is how kernels run."""
    if "mul" in line.modifiers or "div" in line.modifiers:
        raise UnknownInstruction(f"an output modifier, {line.where}")
    if not line.modifiers.get("clamp"):
        return lambda value: value
    kind = named[0] if len(named) == 1 else ""
    if kind in ("f32", "f16", "f64"):
        return clamped
    if line.mnemonic not in _SATURATE:
        raise UnknownInstruction(f"clamp on a result that has none, {line.where}")
    return lambda value: saturated(value, _INTEGERS[kind])


def clamped(value: Array) -> Array:
    """To 0 ... 1; NaN becomes 0 (DX10_CLAMP, which is set)."""
    return np.where(value > 0, np.minimum(value, 1), 0).astype(value.dtype)


def saturated(value: Array, kind: Any) -> Array:
    """int64 to the range of a narrower kind."""
    limits = np.iinfo(kind)
    return np.clip(value, limits.min, limits.max).astype(kind)


def _wider(read: Read) -> Read:
    return lambda group: read(group).astype(I64)


# DPP


def _dpp(line: Instruction) -> tuple[Callable[[Group, Array], Array] | None, Callable[[Group], Array] | None]:
    """How source 0 is taken from other lanes, and which lanes are written."""
    if line.suffix != "dpp":
        return None, None
    source, valid = _dpp_lanes(line)
    rows = (int(str(line.modifiers.get("row_mask", 15))) >> (LANES // 16)) & 1
    banks = (int(str(line.modifiers.get("bank_mask", 15))) >> (LANES % 16 // 4)) & 1
    enabled = (rows & banks).astype(bool)
    bound = bool(line.modifiers.get("bound_ctrl"))

    def readable(group: Group) -> Array:
        found: Array = valid & group.mask[:, source]
        return found

    def shuffle(group: Group, value: Array) -> Array:
        moved: Array = value[:, source]
        return np.where(readable(group), moved, U32(0)) if bound else moved

    def allowed(group: Group) -> Array:
        return spread(enabled, group.size) if bound else enabled & readable(group)

    return shuffle, allowed


def _dpp_lanes(line: Instruction) -> tuple[Array, Array]:
    """The lane that each lane reads, and whether there is one."""
    control = next((name for name in _DPP if name in line.modifiers), None)
    if control is None:
        raise UnknownInstruction(f"an unknown DPP control, {line.where}")
    value = line.modifiers[control]
    row, within = LANES // 16 * 16, LANES % 16
    if control == "quad_perm":
        assert isinstance(value, tuple)
        return LANES // 4 * 4 + np.array(value)[LANES % 4], np.ones(64, bool)
    n = int(str(value)) if not isinstance(value, bool) else 0
    source, valid = {
        "row_shl": (LANES + n, within + n < 16),
        "row_shr": (LANES - n, within - n >= 0),
        "row_ror": (row + (within - n) % 16, np.ones(64, bool)),
        "row_mirror": (row + 15 - within, np.ones(64, bool)),
        "row_half_mirror": (row + (within // 8) * 8 + 7 - within % 8, np.ones(64, bool)),
        "row_bcast": (row - 1, LANES >= 16) if n == 15 else (np.full(64, 31), LANES >= 32),
        "row_newbcast": (row + n, np.ones(64, bool)),
        "wave_shr": (LANES - 1, LANES >= 1),
    }[control]
    return np.clip(source, 0, 63), valid
