"""The instructions of compiled kernels, a line each, and in one sentence whether the emulator runs them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from m3gen.report import layout
from m3gen.report.words import count

if TYPE_CHECKING:
    from m3gen.emulator.mnemonics import Use, Used


@dataclass(frozen=True, slots=True)
class Row:
    """One mnemonic in `kernels` of the kernels; `refused` is the first reason that the emulator does not run it."""

    mnemonic: str
    kernels: int
    unit: str
    cycles: int
    section: str
    refused: str

    @property
    def covered(self) -> bool:
        return not self.refused


@dataclass(frozen=True, slots=True)
class Listing:
    """The mnemonics of all kernels of an architecture; `failed`: why variants have none."""

    arch: str
    kernels: int
    rows: tuple[Row, ...]
    failed: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Every variant compiles and the emulator runs every instruction of it."""
        return not self.failed and all(row.covered for row in self.rows)

    @property
    def summary(self) -> str:
        """ "143 mnemonics in 120 kernels, all covered"."""
        missing = sum(not row.covered for row in self.rows)
        covered = f"{missing} NOT covered" if missing else "all covered"
        failed = f"; {count(len(self.failed), 'variant')} FAILED" if self.failed else ""
        return f"{count(len(self.rows), 'mnemonic')} in {count(self.kernels, 'kernel')}, {covered}{failed}"


def listing(arch: str, found: Iterable[Used]) -> Listing:
    """Kernels of the same machine code count once."""
    kernels: dict[str, tuple[Use, ...]] = {}
    failed: list[str] = []
    for one in found:
        kernels.update(one.kernels)
        if one.reason:
            failed.append(f"{one.status}: {one.reason}")
    counts = Counter(use.mnemonic for uses in kernels.values() for use in uses)
    first: dict[str, Use] = {}
    for use in (use for uses in kernels.values() for use in uses):
        if use.mnemonic not in first or (use.refused and not first[use.mnemonic].refused):
            first[use.mnemonic] = use
    rows = tuple(
        Row(name, counts[name], use.unit, use.cycles, use.section, use.refused)
        for name, use in sorted(first.items())
    )
    return Listing(arch, len(kernels), rows, tuple(failed))


def table(one: Listing) -> RenderableType:
    columns = ("mnemonic", ">kernels", "unit", ">cycles", "section", "covered")
    cells = [
        (
            row.mnemonic,
            str(row.kernels),
            row.unit or "-",
            str(row.cycles or "-"),
            row.section or "-",
            _covered(row),
        )
        for row in one.rows
    ]
    return layout.table(columns, cells)


def listing_object(one: Listing) -> dict[str, Any]:
    """A listing as plain data."""
    return {
        "arch": one.arch,
        "kernels": one.kernels,
        "summary": one.summary,
        "failed": list(one.failed),
        "mnemonics": [
            {
                "mnemonic": row.mnemonic,
                "kernels": row.kernels,
                "unit": row.unit,
                "cycles": row.cycles,
                "section": row.section,
                "covered": row.covered,
                "refused": row.refused or None,
            }
            for row in one.rows
        ],
    }


def _covered(row: Row) -> str:
    return "yes" if row.covered else f"NO: {row.refused}"
