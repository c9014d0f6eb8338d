"""`tl.sort` and `tl.topk` of integers by numpy: the bits of the network that Triton writes out, and launches twenty
times faster. Floats keep the network, whose order of NaN is its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

_network_sort, _network_topk = tl.sort, tl.topk  # as they are before anything is patched


def sort(x: Any, dim: Any = None, descending: Any = False) -> Any:
    """`tl.sort`: along the last dimension, ascending unless told."""
    if not _is_plain(x, dim):
        return _network_sort(x, dim, descending)
    return _ordered(x, x.shape[-1], _value(descending))


def topk(x: Any, k: Any, dim: Any = None, **descending: Any) -> Any:
    """`tl.topk`: the `k` greatest of the last dimension, the greatest first. 3.6 knows no `descending`."""
    count = _value(k)
    if not _is_plain(x, dim) or descending or not 0 < count <= x.shape[-1] or count & (count - 1):
        return _network_topk(x, k, dim, **descending)
    return _ordered(x, count, True)


def _is_plain(x: Any, dim: Any) -> bool:
    """Integers of a byte or more, to be ordered along the last dimension."""
    return x.dtype.is_int() and x.dtype.primitive_bitwidth >= 8 and _value(dim) in (None, len(x.shape) - 1)


def _ordered(x: Any, count: int, descending: bool) -> Any:
    ascending = np.sort(x.handle.data, axis=-1)
    values = np.ascontiguousarray((ascending[..., ::-1] if descending else ascending)[..., :count])
    return tl.core.tensor(TensorHandle(values, x.dtype), tl.block_type(x.dtype, list(values.shape)))


def _value(constant: Any) -> Any:
    return constant.value if isinstance(constant, tl.constexpr) else constant
