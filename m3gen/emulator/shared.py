"""`Shared`: the LDS of every workgroup that runs."""

from __future__ import annotations

import numpy as np

from m3gen.emulator.faults import MemoryFault
from m3gen.emulator.group import I64, Array

_UNWRITTEN = 0xFF  # NaN in fp32, bf16, fp16 and e4m3fn


class Shared:
    """`size` bytes for each of `rows` workgroups, of which `written` is what anybody wrote. Addresses are of 32 bits
    and wrap: a base may be below zero by what an offset adds.

    Accesses: rows and addresses int64 [n], all of one width. `MemoryFault` with the index of the first address
    that is outside. `unwritten` counts bytes that were read before anybody wrote them, `unwritten_row` is the index of
    the first address of the latest load that met one.
    """

    def __init__(self, rows: int, size: int) -> None:
        self.size = size
        self._bytes = np.full(rows * size, _UNWRITTEN, np.uint8)
        self._written = np.zeros(rows * size, bool)
        self.unwritten = 0
        self.unwritten_row = 0

    def load(self, rows: Array, addresses: Array, width: int) -> Array:
        """uint8 [n, width]."""
        at = self._at(rows, addresses, width)
        written = self._written[at]
        if missing := at.size - int(np.count_nonzero(written)):
            self.unwritten += missing
            self.unwritten_row = int((~written.all(axis=1)).argmax())
        found: Array = self._bytes[at]
        return found

    def store(self, rows: Array, addresses: Array, data: Array) -> None:
        at = self._at(rows, addresses, data.shape[1])
        self._bytes[at] = data
        self._written[at] = True

    def _at(self, rows: Array, addresses: Array, width: int) -> Array:
        addresses = addresses & 0xFFFFFFFF
        outside = addresses + width > self.size
        if outside.any():
            row = int(outside.argmax())
            fault = MemoryFault(f"{width} bytes at {int(addresses[row])} of the LDS, which has {self.size} bytes")
            fault.row = row  # type: ignore[attr-defined]
            raise fault
        at: Array = (rows * self.size + addresses)[:, None] + np.arange(width, dtype=I64)
        return at
