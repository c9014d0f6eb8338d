"""Compares: a bit for each lane into a pair of scalar registers, or into EXEC. Section VOPC of the ISA guides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from m3gen.emulator.group import U32, Array, Group
from m3gen.emulator.operands import plain
from m3gen.emulator.program import Instruction
from m3gen.emulator.table import VALU, Step, custom, instruction

Test = Callable[[Array, Array], Array]

_INTEGERS: dict[str, Test] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "f": lambda x, y: np.zeros(np.broadcast_shapes(x.shape, y.shape), bool),
    "t": lambda x, y: np.ones(np.broadcast_shapes(x.shape, y.shape), bool),
}


def _unordered(x: Array, y: Array) -> Array:
    return np.isnan(x) | np.isnan(y)


_FLOATS: dict[str, Test] = {
    "eq": np.equal,
    "lg": lambda x, y: (x < y) | (x > y),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "o": lambda x, y: ~_unordered(x, y),
    "u": _unordered,
    "neq": lambda x, y: ~(x == y),
    "nlg": lambda x, y: ~((x < y) | (x > y)),
    "nlt": lambda x, y: ~(x < y),
    "nle": lambda x, y: ~(x <= y),
    "ngt": lambda x, y: ~(x > y),
    "nge": lambda x, y: ~(x >= y),
    "f": _INTEGERS["f"],
    "tru": _INTEGERS["t"],
}

TESTS: dict[str, tuple[str, Test]] = {
    f"{name}_{kind}": (kind, test)
    for tests, kinds in (
        (_INTEGERS, ("u32", "i32", "u64", "i64", "u16", "i16")),
        (_FLOATS, ("f32", "f64", "f16")),
    )
    for name, test in tests.items()
    for kind in kinds
}
for _name, (_kind, _test) in TESTS.items():
    instruction(f"v_cmp_{_name}", f"lanes : {_kind} {_kind}", VALU, "VOPC")(_test)


@custom(*(f"v_cmpx_{name}" for name in TESTS), unit=VALU, section="VOPC", signature="lanes exec : x x")
def _into_exec(line: Instruction, machine: Any) -> Step:
    kind, test = TESTS[line.mnemonic.removeprefix("v_cmpx_")]
    into_scalar = plain(line, f"lanes : {kind} {kind}", test)
    first = line.operands[0].index

    def step(group: Group) -> None:
        into_scalar(group)
        if line.operands[0].kind != "exec":
            group.set_exec(group.lanes(first))

    return step


# v_cmp_class_f32: bits of the second source name classes (VOPC, "V_CMP_CLASS_F32").
def _classes(x: Array, mask: Array) -> Array:
    bits = x.view(U32)
    exponent, fraction, negative = (bits >> U32(23)) & U32(0xFF), bits & U32(0x7FFFFF), bits >> U32(31) == 1
    nan, infinite = (exponent == 255) & (fraction != 0), (exponent == 255) & (fraction == 0)
    zero, tiny = (exponent == 0) & (fraction == 0), (exponent == 0) & (fraction != 0)
    normal = (exponent > 0) & (exponent < 255)
    quiet = fraction >> U32(22) == 1
    kinds = (
        nan & ~quiet,
        nan & quiet,
        infinite & negative,
        normal & negative,
        tiny & negative,
        zero & negative,
        zero & ~negative,
        tiny & ~negative,
        normal & ~negative,
        infinite & ~negative,
    )
    found = np.zeros((1, 1), bool)
    for number, kind in enumerate(kinds):
        found = found | (kind & ((mask >> U32(number)) & U32(1) == 1))
    return found


instruction("v_cmp_class_f32", "lanes : f32 u32", VALU, "VOPC")(_classes)
