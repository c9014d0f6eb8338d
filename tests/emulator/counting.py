"""An emulator that counts launches by kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from m3gen.emulator import Code, Emulator


@dataclass
class Counting(Emulator):
    ran: Counter[str] = field(default_factory=Counter)

    def execute(self, code: Code, grid: tuple[int, int, int], arguments: Mapping[str, Any]) -> None:
        self.ran[code.name] += 1
        super().execute(code, grid, arguments)
