"""`Tensor`: a tensor argument without a device, by its layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from m3gen.codegen.launch import Pointer
from m3gen.spec import DTYPES

_ALIGNMENT = 256  # of an allocation, in bytes
_INTEGERS = {"i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8}

SIZES = {**{name: one.bytes for name, one in DTYPES.items()}, **_INTEGERS}
"""Bytes of one element by dtype."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`strides` and `offset` (of the first element from the start of the storage) are in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage_bytes: int
    offset: int = 0

    @classmethod
    def of(
        cls,
        name: str,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        storage_bytes: int | None = None,
        offset: int = 0,
    ) -> Tensor:
        """Dense and in storage of its own where nothing else is said. `ValueError` for what there cannot be."""
        if dtype not in SIZES:
            raise ValueError(f"unknown dtype {dtype!r}: expected one of {', '.join(SIZES)}")
        if any(one < 0 for one in (*shape, offset)):
            raise ValueError(f"expected no negative extent or offset, got {list(shape)} at {offset}")
        steps = tuple(dense(shape) if strides is None else strides)
        if len(steps) != len(shape) or any(step < 0 for step in steps):
            raise ValueError(f"expected {len(shape)} strides of 0 and more, got {list(steps)}")
        reach = 1 + sum((one - 1) * step for one, step in zip(shape, steps, strict=True)) if all(shape) else 0
        needed = (offset + reach) * SIZES[dtype]
        if storage_bytes is not None and storage_bytes < needed:
            raise ValueError(f"its elements reach to byte {needed}, its storage has {storage_bytes}")
        return cls(name, dtype, tuple(shape), steps, needed if storage_bytes is None else storage_bytes, offset)

    @property
    def pointer(self) -> Pointer:
        """What a launch knows of it."""
        start = self.offset * SIZES[self.dtype]
        alignment = min(_ALIGNMENT, start & -start) if start else _ALIGNMENT
        return Pointer(self.dtype, alignment, self.storage_bytes)


def dense(shape: Sequence[int]) -> list[int]:
    """Strides of a tensor whose last dimension varies fastest."""
    strides, step = [], 1
    for one in reversed(shape):
        strides.append(step)
        step *= max(1, one)
    return strides[::-1]
