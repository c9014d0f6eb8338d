"""`Shared`: the LDS of every workgroup that runs."""

from __future__ import annotations

import numpy as np

from m3gen.emulator.faults import MemoryFault
from m3gen.emulator.group import I64, Array

_WIDEST = 16
_UNITS = {width: f"V{width}" for width in (2, 4, 8, 16)}
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
        self._pitch = -(-size // _WIDEST) * _WIDEST
        self._bytes = np.full(rows * self._pitch, _UNWRITTEN, np.uint8)
        self._written = np.zeros(rows * self._pitch, bool)
        self.unwritten = 0
        self.unwritten_row = 0

    def load(self, rows: Array, addresses: Array, width: int) -> Array:
        """uint8 [n, width]."""
        at = self._at(rows, addresses, width)
        written = _gather(self._written, at, width)
        if missing := written.size - int(np.count_nonzero(written)):
            self.unwritten += missing
            self.unwritten_row = int((~written.all(axis=1)).argmax())
        return _gather(self._bytes, at, width)

    def store(self, rows: Array, addresses: Array, data: Array) -> None:
        width = data.shape[1]
        at = self._at(rows, addresses, width)
        _scatter(self._bytes, at, data)
        _scatter(self._written, at, np.ones((1, width), bool))

    def _at(self, rows: Array, addresses: Array, width: int) -> Array:
        addresses = addresses & 0xFFFFFFFF
        outside = addresses + width > self.size
        if outside.any():
            row = int(outside.argmax())
            fault = MemoryFault(f"{width} bytes at {int(addresses[row])} of the LDS, which has {self.size} bytes")
            fault.row = row  # type: ignore[attr-defined]
            raise fault
        at: Array = rows * self._pitch + addresses
        return at


def _gather(store: Array, at: Array, width: int) -> Array:
    """Elements of one byte, [n, width], from `at` on."""
    if width in _UNITS and not (at % width).any():
        found: Array = store.view(_UNITS[width])[at // width]
        return found.view(store.dtype).reshape(-1, width)
    return store[at[:, None] + np.arange(width, dtype=I64)]


def _scatter(store: Array, at: Array, data: Array) -> None:
    """The inverse; later rows win, one row goes everywhere."""
    width = data.shape[1]
    if width in _UNITS and not (at % width).any():
        store.view(_UNITS[width])[at // width] = np.ascontiguousarray(data).view(_UNITS[width])[:, 0]
    else:
        store[at[:, None] + np.arange(width, dtype=I64)] = data
