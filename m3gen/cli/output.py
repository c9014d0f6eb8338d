"""Where the words go: tables and JSON to standard output, progress and remarks to standard error."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from m3gen import __version__
from m3gen.errors import UserError
from m3gen.report import machine


def stdout(least: int = 0) -> Console:
    """As wide as the terminal, or `least` columns where it is narrower."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, least)
    return console


def stderr() -> Console:
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def print_object(command: str, fields: Mapping[str, Any]) -> None:
    """The one JSON object of a command."""
    sys.stdout.write(machine.dumps({"m3gen": __version__, "command": command, **fields}) + "\n")


def require_writable(folder: Path, otherwise: str) -> None:
    """Make `folder` if need be; `UserError` when nothing can be written there, saying what else would do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot write to {folder} ({reason}): make it writable, or {otherwise}") from None
