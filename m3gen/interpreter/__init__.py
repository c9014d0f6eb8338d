"""Triton's interpreter made right for bf16 and fp8, so that kernels can be run and checked on a CPU."""

from m3gen.interpreter.install import active, install, interpreted, interpreting, overflow_unchecked, require
from m3gen.interpreter.versions import KNOWN_RIGHT

__all__ = [
    "KNOWN_RIGHT",
    "active",
    "install",
    "interpreted",
    "interpreting",
    "overflow_unchecked",
    "require",
]
