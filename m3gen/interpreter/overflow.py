"""The check of integer operations for overflow, by numpy. Triton builds it out of ten operations of its own, each
interpreted, and ends it in an assertion that its interpreter leaves out: half a launch's time for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def check(semantic: Any, lhs: Any, rhs: Any, operation: Callable[..., Any]) -> None:
    """What `TritonSemantic.binary_op_sanitize_overflow_impl` does, with its message: `AssertionError` where the
    result of an operation on narrower integers than 64 bits, computed in int64, is outside their range."""
    scalar, options = lhs.type.scalar, semantic.builder.options
    if scalar.int_bitwidth >= 64 or not options.sanitize_overflow:
        return
    name = operation.__name__
    wide = _OPERATIONS[name](lhs.handle.data, rhs.handle.data, dtype=np.int64, casting="unsafe")
    if wide.size and (wide.max() > scalar.get_int_max_value() or wide.min() < scalar.get_int_min_value()):
        raise AssertionError(f"int{scalar.int_bitwidth} overflow detected for operation {name}")
