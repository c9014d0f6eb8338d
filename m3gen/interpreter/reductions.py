"""Reductions and scans of the interpreter over bf16 and the 8-bit floats.

A combine step in an encoded type rounds to that type, as it does on a GPU. The order is a balanced tree for
sums and sequential for scans; GPUs promise no order. A combine function of the user's own runs element by
element as in stock Triton, whose handles are right once the builder is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime.interpreter import ReduceOps, ScanOps

from m3gen.interpreter.builder import encoded, numbers
from m3gen.interpreter.numerics import ENCODED, decode, encode


class CorrectedReduceOps(ReduceOps):  # type: ignore[misc]
    def apply_impl(self, input: Any) -> Any:
        standard, combine = tl.standard, self.combine_fn
        if combine in (standard._argmax_combine_tie_break_left, standard._argmax_combine_tie_break_fast):
            return self._extreme(input[0], np.fmax, np.argmax, -np.inf)
        if combine in (standard._argmin_combine_tie_break_left, standard._argmin_combine_tie_break_fast):
            return self._extreme(input[0], np.fmin, np.argmin, np.inf)
        if combine is standard._elementwise_max:
            return self._extreme(input[0], np.fmax)
        if combine is standard._elementwise_min:
            return self._extreme(input[0], np.fmin)
        if combine is standard._sum_combine and encoded(input[0].handle):
            return self._sum_encoded(input[0])
        return super().apply_impl(input)

    def _extreme(
        self, input: Any, pick: Any, locate: Callable[..., Any] | None = None, neutral: float = 0.0
    ) -> Any:
        """The largest or smallest with NaN left out, NaN when nothing else is there, and the leftmost place
        of it when asked. 3.6 lets NaN through; later versions raise when a whole slice is NaN."""
        values, where = numbers(input.handle), {"axis": self.axis, "keepdims": self.keep_dims}
        extreme = self._typed(pick.reduce(values, **where), input.dtype)
        if locate is None:
            return extreme
        if np.issubdtype(values.dtype, np.floating):
            values = np.where(np.isnan(values), values.dtype.type(neutral), values)
        return extreme, self.to_tensor(locate(values, **where), tl.int32)

    def _sum_encoded(self, input: Any) -> Any:
        name, codes, axis = input.dtype.name, input.handle.data, self.axis
        halves = codes.reshape(-1) if axis is None else np.moveaxis(codes, axis, 0)
        while len(halves) > 1:
            low, high = np.split(decode(halves, name), 2)
            halves = encode(low + high, name, keep_infinity=True)
        total = halves[0]
        if self.keep_dims:
            total = np.expand_dims(total, tuple(range(codes.ndim)) if axis is None else axis)
        return self.to_tensor(total, input.dtype)

    def _typed(self, values: NDArray[Any], dtype: Any) -> Any:
        """A tensor of numbers; `to_tensor` wants codes for an encoded type."""
        if dtype.name in ENCODED:
            values = encode(values, dtype.name, keep_infinity=True)
        return self.to_tensor(values, dtype)


class CorrectedScanOps(ScanOps):  # type: ignore[misc]
    def cumsum(self, input: Any) -> Any:
        return [self._accumulate(input, np.add)] if encoded(input.handle) else super().cumsum(input)

    def cumprod(self, input: Any) -> Any:
        return [self._accumulate(input, np.multiply)] if encoded(input.handle) else super().cumprod(input)

    def _accumulate(self, input: Any, combine: Callable[..., Any]) -> Any:
        name, codes = input.dtype.name, input.handle.data
        lanes = np.moveaxis(codes, self.axis, 0)
        running = [lanes[0]]
        for lane in lanes[1:]:
            result = combine(decode(running[-1], name), decode(lane, name))
            running.append(encode(result, name, keep_infinity=True))
        return self.to_tensor(np.moveaxis(np.stack(running), 0, self.axis), input.dtype)
