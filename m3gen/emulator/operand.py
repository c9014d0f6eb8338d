"""`Operand`: what stands between the commas of an instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Scalar register numbers of the CDNA3 ISA reference guide, "Scalar operand encoding".
VCC, TTMP, M0 = 106, 108, 124
_NAMED = {"vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "m0": (M0, 1), "flat_scratch": (102, 2)}
_EXEC = {"exec": (0, 2), "exec_lo": (0, 1), "exec_hi": (1, 1)}
_RANGE = re.compile(r"(v|s|a|ttmp)\[(\d+):(\d+)\]")
_SINGLE = re.compile(r"(v|s|a|ttmp)(\d+)")
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|\d+)", re.IGNORECASE)
_FLOAT = re.compile(r"-?(\d+\.\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Operand:
    """`kind`: "v" (`index` from 0), "a" likewise, "s", "exec" (`index` 0 or 1 for a half), "int" and "float"
    with a `value`, "scc", "off", "label" with a `text`. `count` is in registers of 32 bits."""

    kind: str
    index: int = 0
    count: int = 1
    value: float = 0
    negated: bool = False
    absolute: bool = False
    signed: bool = False  # sext() of a sub-dword source
    text: str = ""


def parse_operand(text: str) -> Operand:
    """`ValueError` for what is none."""
    bare = text.strip()
    signs: dict[str, Any] = {}
    if bare.startswith("sext("):
        bare, signs["signed"] = bare[5:-1], True
    if bare.startswith("neg("):
        bare, signs["negated"] = bare[4:-1], True
    if bare.startswith("-") and not (_INTEGER.fullmatch(bare) or _FLOAT.fullmatch(bare)):
        bare, signs["negated"] = bare[1:], True
    if bare.startswith("|"):
        bare, signs["absolute"] = bare.strip("|"), True
    if bare in _NAMED:
        index, count = _NAMED[bare]
        return Operand("s", index, count, **signs)
    if bare in _EXEC:
        index, count = _EXEC[bare]
        return Operand("exec", index, count, **signs)
    if match := _RANGE.fullmatch(bare):
        first, last = int(match[2]), int(match[3])
        return _register(match[1], first, last - first + 1, signs)
    if match := _SINGLE.fullmatch(bare):
        return _register(match[1], int(match[2]), 1, signs)
    if _INTEGER.fullmatch(bare):
        return Operand("int", value=int(bare, 0), **signs)
    if _FLOAT.fullmatch(bare):
        return Operand("float", value=float(bare), **signs)
    if bare in ("off", "scc"):
        return Operand(bare)
    if bare.startswith("("):  # a difference of labels
        return Operand("difference", text=bare)
    if re.fullmatch(r"[.\w$]+", bare):
        return Operand("label", text=bare)
    raise ValueError(f"{text!r} is no operand")


def _register(bank: str, first: int, count: int, signs: Mapping[str, Any]) -> Operand:
    if bank == "ttmp":
        return Operand("s", TTMP + first, count, **signs)
    return Operand(bank, first, count, **signs)
