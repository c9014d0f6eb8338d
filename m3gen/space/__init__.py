"""Parameters, constraints and the spaces they span."""

from m3gen.space.config import Config, Value
from m3gen.space.constraint import Constraint, Violation
from m3gen.space.parameter import Choice, Flag, Ordinal, Parameter, PowerOfTwo
from m3gen.space.space import Space

__all__ = [
    "Choice",
    "Config",
    "Constraint",
    "Flag",
    "Ordinal",
    "Parameter",
    "PowerOfTwo",
    "Space",
    "Value",
    "Violation",
]
