"""Compares: a bit for each lane, zero outside EXEC; v_cmpx writes EXEC too. NaN is in no order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.isa.numbers import decode, mask
from tests.emulator.isa.rows import LANES, Row, check, run, vary

VOP = ("e32", "e64", "sdwa")
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
INTEGER = {**ORDERS, "ne": operator.ne, "f": lambda x, y: False, "t": lambda x, y: True}
FLOAT = {
    **ORDERS,
    "lg": lambda x, y: x < y or x > y,
    "o": lambda x, y: not (math.isnan(x) or math.isnan(y)),
    "u": lambda x, y: math.isnan(x) or math.isnan(y),
    "neq": lambda x, y: x != y,
    "nlg": lambda x, y: not (x < y or x > y),
    "nlt": lambda x, y: not x < y,
    "nle": lambda x, y: not x <= y,
    "ngt": lambda x, y: not x > y,
    "nge": lambda x, y: not x >= y,
    "f": lambda x, y: False,
    "tru": lambda x, y: True,
}


def in_class(word: int, wanted: int) -> bool:
    """The ten classes by the bits of `wanted`: signalling, quiet NaN; -inf, -normal, -denormal, -0, and from +0 up."""
    x, negative = decode("f32", word), word >> 31
    if math.isnan(x):
        number = 1 if word >> 22 & 1 else 0
    else:
        size = 3 if math.isinf(x) else 2 if abs(x) >= 2.0**-126 else 1 if x else 0
        number = 5 - size if negative else 6 + size
    return bool(wanted >> number & 1)


ROWS = {
    f"v_{prefix}_{name}_{kind}": Row(f"lanes : {kind} {kind}", test, VOP if "64" not in kind else VOP[:2])
    for prefix in ("cmp", "cmpx")
    for tests, kinds in (
        (INTEGER, ("u32", "i32", "u64", "i64", "u16", "i16")),
        (FLOAT, ("f32", "f64", "f16")),
    )
    for name, test in tests.items()
    for kind in kinds
}
ROWS["v_cmp_class_f32"] = Row("lanes : x32 u32", in_class, VOP, modifiers=False)
FORMS = [(mnemonic, form) for mnemonic, row in ROWS.items() for form in row.forms]


@pytest.mark.parametrize("mnemonic", ROWS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=3, deadline=None)
def test_a_line_gives_what_its_formula_says(mnemonic: str, seed: int) -> None:
    row = ROWS[mnemonic]
    check(mnemonic, row, row.forms[seed % len(row.forms)], seed)


@pytest.mark.parametrize("mnemonic", [mnemonic for mnemonic in ROWS if mnemonic.startswith("v_cmpx")])
def test_cmpx_writes_exec(mnemonic: str) -> None:
    row = ROWS[mnemonic]
    for form in row.forms:
        line = vary(mnemonic, row, form, 7)
        masks = [mask(64), 0x0F0F_3333_8000_0001]
        group = run(line, row.arch, masks)
        first = 106 if line.mask_out == "vcc" else 62
        for wave, active in enumerate(masks):
            bits = int(group.s[first][wave, 0]) | int(group.s[first + 1][wave, 0]) << 32
            assert sum(int(on) << lane for lane, on in enumerate(group.mask[wave])) == bits
            assert bits & ~active == 0


def test_a_class_of_every_kind_of_number() -> None:
    words = [0x7F800001, 0x7FC00000, 0xFF800000, 0xBF800000, 0x80000001, 0x80000000, 0, 1, 0x3F800000, 0x7F800000]
    for number in range(10):
        line = vary("v_cmp_class_f32", ROWS["v_cmp_class_f32"], "e32", 0)
        line.text = "v_cmp_class_f32_e32 vcc, v2, v4"
        line.mask_out = "vcc"
        line.vectors = {2: [(words + [0] * LANES)[:LANES]] * 2, 4: [[1 << number] * LANES] * 2}
        group = run(line, "gfx942", [mask(64)] * 2)
        low = np.unpackbits(group.s[106][:1, :1].view(np.uint8), bitorder="little")[:10]
        assert low.tolist() == [int(n == number) for n in range(10)]
