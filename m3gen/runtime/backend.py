"""What launches run on: the GPU that is here, Triton's interpreter on the CPU, or what the caller has."""

from __future__ import annotations

import functools
from enum import StrEnum
from typing import Any

import torch

from m3gen.runtime.selection import Launcher
from m3gen.targets import UnknownTarget, architecture


class Place(StrEnum):
    """What runs the launches of a `KernelSet`."""

    GPU = "gpu"  # the one that is here
    INTERPRETER = "interpreter"  # Triton's, on the CPU
    CALLER = "caller"  # what `load` was given: `m3gen.emulator.Emulator.emulated`


def live_architecture() -> str | None:
    """Architecture of the current GPU; None without one, or for one that m3gen does not know."""
    if not torch.cuda.is_available():
        return None
    if torch.version.hip:
        name = torch.cuda.get_device_properties(torch.cuda.current_device()).gcnArchName
    else:
        name = "sm_{}{}".format(*torch.cuda.get_device_capability())
    try:
        return architecture(name).name
    except UnknownTarget:
        return None


def interpreted(launcher: Launcher) -> Launcher:
    """The launcher with its kernels run by the interpreter; one thread at a time.

    Launching raises `UserError` under a Triton whose interpreter is not known to be right.
    """

    @functools.wraps(launcher)
    def launch(*arguments: Any, **keywords: Any) -> None:
        from m3gen.interpreter import interpreting

        with interpreting():
            launcher(*arguments, **keywords)

    return launch


def compiled(launcher: Launcher) -> Launcher:
    """The launcher as it is: the GPU is here."""
    return launcher
