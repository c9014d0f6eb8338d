"""Every computing mnemonic of the table has a formula, and every line that the formulas are tried on is an
instruction."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import pytest

import m3gen.emulator.isa  # noqa: F401 - fills the table
from m3gen.emulator.table import SALU, TABLE, TRANSCENDENTAL, VALU
from tests.emulator.isa import (
    test_compare,
    test_convert,
    test_floating,
    test_integer,
    test_packed,
    test_scalar,
)
from tests.emulator.isa.assembler import assemble
from tests.emulator.isa.rows import vary

MODULES: list[ModuleType] = [test_compare, test_convert, test_floating, test_integer, test_packed, test_scalar]
VECTORS = [test_compare, test_convert, test_floating, test_integer]
# Movement between lanes and registers, and control, are tested by what they do to a wave.
ELSEWHERE = ("m3gen.emulator.isa.lanes", "m3gen.emulator.isa.control")


def covered(module: ModuleType) -> set[str]:
    return set(module.ROWS) | getattr(module, "SPECIAL", set())


def test_every_computing_mnemonic_has_a_formula() -> None:
    computing = {
        mnemonic
        for mnemonic, spec in TABLE.items()
        if spec.unit in (VALU, TRANSCENDENTAL, SALU) and spec.build.__module__ not in ELSEWHERE
    }
    tested = set().union(*map(covered, MODULES))
    assert computing - tested == set()
    assert tested - set(TABLE) == set()


@cache
def lines(arch: str) -> list[str]:
    found = []
    for module in VECTORS:
        for mnemonic, form in module.FORMS:
            row = module.ROWS[mnemonic]
            if row.arch == arch:
                found += [vary(mnemonic, row, form, seed).text for seed in range(2)]
    if arch == "gfx942":
        for mnemonic, row in test_scalar.ROWS.items():
            found += [test_scalar.Writer(mnemonic, row, seed).text for seed in range(2)]
        found += [
            test_packed.float_line(mnemonic, seed)[0] for mnemonic in test_packed.FLOATS for seed in range(2)
        ]
        found += [test_packed.half_line(mnemonic, seed)[0] for mnemonic in test_packed.HALVES for seed in range(2)]
    return found


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_lines_assemble(arch: str) -> None:
    assemble(lines(arch), arch)


def test_the_lines_for_gfx942_assemble_for_gfx950_too() -> None:
    assemble(lines("gfx942"), "gfx950")
