"""Element types by their exact variant: `e4m3fn` (OCP) and `e4m3fnuz` are two types, never one "fp8"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    `name` is the canonical spelling in problems and tables, `torch_name` the attribute of `torch`,
    `triton_name` the attribute of `triton.language`, `bytes` the size of one element, and `max` the largest
    finite value (sources: OCP 8-bit Floating Point Specification 1.0 for e4m3fn, torch.finfo for the rest).
    """

    name: str
    torch_name: str
    triton_name: str
    bytes: int
    max: float

    @property
    def is_fp8(self) -> bool:
        return self.bytes == 1

    def torch(self) -> torch.dtype:
        """The matching `torch.dtype` (imports torch)."""
        import torch

        return getattr(torch, self.torch_name)  # type: ignore[no-any-return]


BF16 = DType("bf16", "bfloat16", "bfloat16", 2, 3.3895313892515355e38)
FP16 = DType("fp16", "float16", "float16", 2, 65504.0)
FP32 = DType("fp32", "float32", "float32", 4, 3.4028234663852886e38)
E4M3FN = DType("e4m3fn", "float8_e4m3fn", "float8e4nv", 1, 448.0)
E4M3FNUZ = DType("e4m3fnuz", "float8_e4m3fnuz", "float8e4b8", 1, 240.0)

DTYPES: dict[str, DType] = {d.name: d for d in (BF16, FP16, FP32, E4M3FN, E4M3FNUZ)}


def dtype(name: str) -> DType:
    """The element type called `name`; `KeyError` naming the known ones otherwise."""
    try:
        return DTYPES[name]
    except KeyError:
        raise KeyError(f"unknown dtype {name!r}: expected one of {', '.join(DTYPES)}") from None
