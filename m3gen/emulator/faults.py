"""What running machine code can find wrong; each names the instruction's line and the source line behind it."""

from __future__ import annotations

from m3gen.errors import UserError


class EmulationError(Exception):
    """A kernel did what no kernel may. One line."""


class MemoryFault(EmulationError):
    """An access outside every registered tensor, or outside of shared memory."""


class UnwrittenRead(EmulationError):
    """Shared memory was read that nothing had written: under `strict` alone."""


class MissingWait(EmulationError):
    """A register was used while a load that writes it, or a store that reads it, was under way."""


class Hang(EmulationError):
    """More branches than any kernel needs."""


class UnknownInstruction(UserError):
    """A mnemonic, an operand or a modifier that the table does not have."""
