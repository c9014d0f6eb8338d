"""`Memory`: the tensors that a kernel may touch, at addresses of their own, and nothing else."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from m3gen.emulator.faults import MemoryFault
from m3gen.emulator.group import I64, Array

_FIRST = 0x7F00_0000_0000
_GAP = 1 << 33  # between tensors, and aligned to: no 32-bit offset leads from one into another


@dataclass(frozen=True, slots=True)
class Region:
    """One storage: `bytes_` at the addresses from `start`."""

    name: str
    start: int
    bytes_: Array

    @property
    def end(self) -> int:
        return self.start + len(self.bytes_)


class Memory:
    """Registered storages. Accesses are of many lanes at once: addresses int64 [n], all of one width.

    Where an access leaves its tensor it raises `MemoryFault` with the index of the first such address.
    """

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._starts = np.zeros(0, I64)
        self._known: dict[int, Region] = {}
        self._next = _FIRST

    def register(self, name: str, address: int, size: int) -> Region:
        """Host memory of `size` bytes at `address`; once for each address and size."""
        known = self._known.get(address)
        if known is not None and len(known.bytes_) >= size:
            return known
        view = (
            np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.zeros(0, np.uint8)
        )
        return self._add(name, view, address)

    def register_array(self, name: str, data: Array) -> Region:
        """A uint8 array."""
        return self._add(name, data, data.ctypes.data)

    def _add(self, name: str, view: Array, address: int) -> Region:
        region = Region(name, self._next, view)
        self._next += -(-max(len(view), 1) // _GAP) * _GAP + _GAP
        self._regions.append(region)
        self._starts = np.array([one.start for one in self._regions], I64)
        self._known[address] = region
        return region

    def load(self, addresses: Array, width: int) -> Array:
        """uint8 [n, width]."""
        out = np.empty((len(addresses), width), np.uint8)
        for region, rows in self._parts(addresses, width):
            found = _gather(region.bytes_, addresses[rows] - region.start, width)
            if isinstance(rows, slice):
                return found
            out[rows] = found
        return out

    def store(self, addresses: Array, data: Array) -> None:
        """data uint8 [n, width]; later rows win."""
        width = data.shape[1]
        for region, rows in self._parts(addresses, width):
            _scatter(region.bytes_, addresses[rows] - region.start, data[rows])

    def _parts(self, addresses: Array, width: int) -> list[tuple[Region, slice | Array]]:
        """The regions that the addresses lie in, each with its rows."""
        if not len(addresses):
            return []
        low, high = int(addresses.min()), int(addresses.max())
        first = int(np.searchsorted(self._starts, low, side="right")) - 1
        if first >= 0 and high + width <= self._regions[first].end:
            return [(self._regions[first], slice(None))]
        which = np.searchsorted(self._starts, addresses, side="right") - 1
        ends = np.array([region.end for region in self._regions], I64)
        outside = (which < 0) | (addresses + width > ends[np.maximum(which, 0)])
        if outside.any():
            self._fault(int(outside.argmax()), addresses, width)
        return [(self._regions[one], (which == one).nonzero()[0]) for one in np.unique(which)]

    def _fault(self, row: int, addresses: Array, width: int) -> None:
        address = int(addresses[row])
        nearest = min(self._regions, key=lambda one: max(one.start - address, address - one.end, 0), default=None)
        near = ""
        if nearest is not None:
            inside = address - nearest.start
            near = f", {inside:+d} bytes from the start of {nearest.name}, which has {len(nearest.bytes_)}"
        fault = MemoryFault(f"{width} bytes at {address:#x}{near}")
        fault.row = row  # type: ignore[attr-defined]
        raise fault


def _gather(store: Array, offsets: Array, width: int) -> Array:
    if width in (4, 8, 16) and not (offsets % width).any():
        whole = len(store) // width * width
        wide = store[:whole].view(f"V{width}")
        return wide[offsets // width].view(np.uint8).reshape(-1, width)
    return store[offsets[:, None] + np.arange(width)]


def _scatter(store: Array, offsets: Array, data: Array) -> None:
    width = data.shape[1]
    if width in (4, 8, 16) and not (offsets % width).any():
        whole = len(store) // width * width
        store[:whole].view(f"V{width}")[offsets // width] = np.ascontiguousarray(data).view(f"V{width}")[:, 0]
    else:
        store[offsets[:, None] + np.arange(width)] = data
