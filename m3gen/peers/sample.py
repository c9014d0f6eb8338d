"""`materialise`: a tensor of a small load, for running machine code on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from m3gen.compiler.triton_adapter import torch_dtype
from m3gen.peers.arithmetic import Expression, Value, evaluate
from m3gen.peers.resolve import Load
from m3gen.peers.tensor import Tensor

if TYPE_CHECKING:
    import torch

ARANGE, BLOCK_TABLE = "arange", "block table"


def materialise(tensor: Tensor, fill: Expression, names: Load) -> torch.Tensor:
    """On the CPU, strides and offset included. Floats are random in [0, 1) whatever `fill` says.

    Integers: "arange" counts along the last dimension, "block table" through the whole tensor, from 0 again after
    every `pages` (a dimension); else an expression's value everywhere. `ValueError` for a fill that is none.
    """
    import torch

    dtype = torch_dtype(tensor.dtype)
    reach = tensor.offset + 1
    reach += sum(max(0, one - 1) * step for one, step in zip(tensor.shape, tensor.strides, strict=True))
    storage = torch.zeros(reach, dtype=torch.uint8 if dtype.is_floating_point and dtype.itemsize == 1 else dtype)
    view = storage.view(dtype).as_strided(tensor.shape, tensor.strides, tensor.offset)
    if dtype.is_floating_point:
        view.copy_(torch.rand(tensor.shape, generator=torch.Generator().manual_seed(0)).to(dtype))
        return view
    if fill == ARANGE:
        view.copy_(torch.arange(tensor.shape[-1]).expand(tensor.shape))
    elif fill == BLOCK_TABLE:
        pages = _integer(names.get("pages"), "pages")
        view.copy_((torch.arange(view.numel()) % pages).view(tensor.shape))
    else:
        view.fill_(_integer(evaluate(fill, names), f"fill of {tensor.name}"))
    return view


def _integer(value: Value, what: str) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{what}: expected an integer, got {value!r}")
    return value
