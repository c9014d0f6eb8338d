"""Machine code of gfx942 and gfx950 executed on the CPU: what it computes, and what it does on the way."""

from m3gen.emulator.faults import (
    EmulationError,
    Hang,
    MemoryFault,
    MissingWait,
    UnknownInstruction,
    UnwrittenRead,
)
from m3gen.emulator.kernel import Code, Emulator, emulating
from m3gen.emulator.machine import Machine
from m3gen.emulator.memory import Memory
from m3gen.emulator.profile import Profile, Trace
from m3gen.emulator.program import Program, parse
from m3gen.emulator.recording import Counts, Recording

__all__ = [
    "Code",
    "Counts",
    "EmulationError",
    "Emulator",
    "Hang",
    "Machine",
    "Memory",
    "MemoryFault",
    "MissingWait",
    "Profile",
    "Program",
    "Recording",
    "Trace",
    "UnknownInstruction",
    "UnwrittenRead",
    "emulating",
    "parse",
]
