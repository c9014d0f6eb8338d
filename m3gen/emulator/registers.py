"""Which registers an instruction looks at or writes: what must not be under way when it issues."""

from __future__ import annotations

from m3gen.emulator.group import Group
from m3gen.emulator.program import Instruction

_NO_REGISTERS = ("s_waitcnt", "s_nop", "s_barrier", "s_endpgm")


def touched(line: Instruction) -> int:
    """A set of registers as bits, see `Group.bit`. Wide operands count with all their registers."""
    if line.mnemonic in _NO_REGISTERS:
        return 0
    bits = 0
    for operand in line.operands:
        if operand.kind in ("v", "a", "s"):
            bits |= Group.bit(operand.kind, operand.index, operand.count)
    return bits
