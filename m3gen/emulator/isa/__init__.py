"""The instructions of gfx942 and gfx950; importing this fills `m3gen.emulator.table.TABLE`."""

from m3gen.emulator.isa import (
    compare,
    control,
    convert,
    floating,
    global_memory,
    integer,
    lanes,
    matrix,
    packed,
    scalar,
    shared_memory,
)

__all__ = [
    "compare",
    "control",
    "convert",
    "floating",
    "global_memory",
    "integer",
    "lanes",
    "matrix",
    "packed",
    "scalar",
    "shared_memory",
]
