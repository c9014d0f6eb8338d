"""Kernel arguments in memory, as the kernel's metadata lays them out (LLVM, "User Guide for AMDGPU Backend", section
"Code Object V5 Metadata")."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from m3gen.emulator.descriptor import Descriptor
from m3gen.emulator.group import Array

Value = int | float

_FORMATS = {("i", 1): "<B", ("i", 2): "<H", ("i", 4): "<I", ("i", 8): "<Q", ("f", 4): "<f", ("f", 8): "<d"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument: bytes from `offset` on; `kind` is "global_buffer", "by_value" or that of a hidden one."""

    offset: int
    size: int
    kind: str


def parameters(assembly: str) -> tuple[Parameter, ...]:
    """Of the only kernel of a text, in order."""
    metadata = assembly.partition(".amdgpu_metadata")[2].partition(".end_amdgpu_metadata")[0]
    listed = metadata.partition(".args:")[2]
    found = re.findall(
        r"\.offset:\s+(\d+)\s+\.size:\s+(\d+)\s+\.value_kind:\s+(\w+)", re.sub(r"\n\s+\.name:[^\n]*", "", listed)
    )
    return tuple(Parameter(int(offset), int(size), kind) for offset, size, kind in found)


def pack(
    assembly: str,
    descriptor: Descriptor,
    values: Sequence[Value],
    grid: Sequence[int] = (1, 1, 1),
    threads: int = 64,
) -> Array:
    """The bytes of `values`, which are the first parameters, and of the hidden arguments that say how large a launch
    is: `grid` workgroups of `threads`. What else follows (scratch pointers, say) is 0.

    `ValueError` when there are more values than parameters.
    """
    places = parameters(assembly)
    if len(values) > len(places):
        raise ValueError(f"{len(values)} arguments for a kernel of {len(places)} parameters")
    size = max([descriptor.kernarg_bytes, *(place.offset + place.size for place in places)])
    data = bytearray(size + 256)  # loads may be wider than what they want
    for place, value in zip(places, values, strict=False):
        if isinstance(value, float):
            bits = struct.pack(_FORMATS["f", place.size], value)
        else:
            bits = struct.pack(_FORMATS["i", place.size], int(value) & ((1 << 8 * place.size) - 1))
        data[place.offset : place.offset + place.size] = bits
    sizes = _sizes(grid, threads)
    for place in places[len(values) :]:
        if place.kind in sizes:
            data[place.offset : place.offset + place.size] = sizes[place.kind].to_bytes(place.size, "little")
    return np.frombuffer(data, np.uint8).copy()


def dispatch_packet(grid: Sequence[int], threads: int) -> Array:
    """What the dispatch pointer points to: a kernel dispatch packet (HSA Platform System Architecture Specification,
    "AQL kernel dispatch packet") with its sizes, in work-items."""
    x, y, z = grid
    return np.frombuffer(
        struct.pack("<HHHHHHIII", 0, 3, threads, 1, 1, 0, x * threads, y, z).ljust(64, b"\0"), np.uint8
    )


def _sizes(grid: Sequence[int], threads: int) -> dict[str, int]:
    counts = {f"hidden_block_count_{axis}": size for axis, size in zip("xyz", grid, strict=True)}
    groups = {f"hidden_group_size_{axis}": size for axis, size in zip("xyz", (threads, 1, 1), strict=True)}
    return {**counts, **groups, "hidden_grid_dims": 3}
