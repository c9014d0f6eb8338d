"""Triton's interpreter builder with bf16 and the 8-bit floats computed as numbers.

The stock builder keeps these types as uint16 and uint8 codes and hands the codes to numpy as they are.
Whatever only moves data (loads, stores, reshapes, selects, gathers, bitcasts) is right that way; what
computes is overridden here: decode to float32, compute, round once.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

from m3gen.interpreter.numerics import ENCODED, decode, encode, nan_code, narrow_toward_zero, to_odd

_COMPARISONS = frozenset({np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal})


def encoded(handle: Any) -> bool:
    """Whether the handle's data are codes of a float that numpy lacks."""
    return handle.dtype.scalar.name in ENCODED


def numbers(handle: Any) -> NDArray[Any]:
    """The handle's data as numbers: float32, exact, for encoded types, else the data as they are."""
    return decode(handle.data, handle.dtype.scalar.name) if encoded(handle) else handle.data


def _float32(handle: Any) -> Any:
    return TensorHandle(numbers(handle), tl.float32) if encoded(handle) else handle


class CorrectedBuilder(InterpreterBuilder):  # type: ignore[misc]
    """Arithmetic in an encoded type is float32 arithmetic rounded once, which for +, -, *, / and sqrt is the
    correctly rounded result (Figueroa, "When is double rounding innocuous?", SIGNUM 30(3), 1995)."""

    def get_bf16(self, value: float) -> Any:
        return self.cast_impl(self.get_fp32(value), tl.bfloat16)

    # What orders memory: here every store is done when it returns.

    def create_inline_asm(
        self, text: str, constraints: str, values: Any, types: Any, pure: bool, pack: int
    ) -> Any:
        if text.startswith("s_waitcnt"):
            return SimpleNamespace(get_result=lambda number: values[number])
        return super().create_inline_asm(text, constraints, values, types, pure, pack)

    # arithmetic and comparisons

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[..., Any]) -> Any:
        if op in _COMPARISONS:
            # The stock result is typed like the left operand and fails later where a mask is wanted.
            return TensorHandle(np.asarray(op(numbers(lhs), numbers(rhs)), dtype=np.bool_), tl.int1)
        if encoded(lhs):
            return self._rounded(op(numbers(lhs), numbers(rhs)), lhs.dtype)
        return super().binary_op(lhs, rhs, op)

    def unary_op(self, arg: Any, op: Callable[..., Any]) -> Any:
        if encoded(arg):
            return self._rounded(op(numbers(arg)), arg.dtype)
        return super().unary_op(arg, op)

    def create_fneg(self, arg: Any) -> Any:
        return self.unary_op(arg, np.negative)

    def create_fabs(self, arg: Any) -> Any:
        return self.unary_op(arg, np.abs)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:  # 3.6 lets a NaN through, GPUs drop it
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Any, low: Any, high: Any, propagate_nans: Any) -> Any:
        if propagate_nans == ir.PROPAGATE_NAN.NONE:
            return self.create_minnumf(self.create_maxnumf(arg, low), high)
        return self.create_minimumf(self.create_maximumf(arg, low), high)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        if encoded(z):  # the product of two 8-bit significands is exact in float64
            product = np.multiply(numbers(x), numbers(y), dtype=np.float64)
            return self._rounded(to_odd(np.asarray(product + numbers(z))), z.dtype)
        return super().create_fma(x, y, z)

    def create_erf(self, arg: Any) -> Any:
        return self._through_float32(super().create_erf, arg)

    def create_rsqrt(self, arg: Any) -> Any:
        return self._through_float32(super().create_rsqrt, arg)

    def _through_float32(self, function: Callable[..., Any], arg: Any) -> Any:
        if encoded(arg):
            return self._rounded(function(_float32(arg)).data, arg.dtype)
        return function(arg)

    def _rounded(self, values: NDArray[Any], dtype: Any) -> Any:
        return TensorHandle(encode(values, dtype.scalar.name, keep_infinity=True), dtype.scalar)

    # casts; bitcasts stay as they are

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        return self._cast(src, dst_type.scalar, toward_zero=False)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if "fp8e4b15" in (src.dtype.scalar.name, dst_type.scalar.name):
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        return self._cast(src, dst_type.scalar, toward_zero=rounding_mode == ir.ROUNDING_MODE.RTZ)

    def _cast(self, src: Any, dtype: Any, toward_zero: bool) -> Any:
        values = numbers(src)
        if dtype.name in ENCODED:
            return TensorHandle(encode(values, dtype.name, toward_zero=toward_zero), dtype)
        narrowed = _get_np_dtype(dtype)
        if toward_zero:
            return TensorHandle(narrow_toward_zero(values, narrowed), dtype)
        return TensorHandle(values.astype(narrowed), dtype)

    # dots

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        """Operands exact; products and sums in float32 (float64 for a float64 accumulator), rounded once to
        the accumulator's type. The order of summation is numpy's."""
        if not d.dtype.scalar.is_floating():
            return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)
        wide = tl.float64 if d.dtype.scalar.is_fp64() else tl.float32
        left, right, start = (numbers(x).astype(_get_np_dtype(wide), copy=False) for x in (a, b, d))
        return self.cast_impl(TensorHandle(np.matmul(left, right) + start, wide), d.dtype)

    # memory

    def create_atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        if not encoded(val) or op != ir.ATOMIC_OP.FADD:
            return super().create_atomic_rmw(op, ptr, val, mask, sem, scope)
        before = np.zeros_like(val.data)
        for lane in np.ndindex(val.data.shape):  # one by one, as lanes may share an address
            if mask.data[lane]:
                address, here = ptr.data[lane].reshape(1), np.ones(1, dtype=np.bool_)
                old = TensorHandle(native.load(address, here, before[lane].reshape(1), before.dtype), val.dtype)
                new = self.create_fadd(old, TensorHandle(val.data[lane].reshape(1), val.dtype))
                native.store(address, new.data, here)
                before[lane] = old.data.item()
        return TensorHandle(before, val.dtype.scalar)

    def create_descriptor_load(self, desc: Any, indices: Any, *policies: Any) -> Any:
        loaded = super().create_descriptor_load(desc, indices, *policies)
        if encoded(loaded) and desc.padding == ir.PADDING_OPTION.PAD_NAN:
            _, inside = desc.materialize_pointers(indices)
            inside = inside.data if isinstance(inside, TensorHandle) else inside  # a bare array up to 3.8
            padding = loaded.data.dtype.type(nan_code(loaded.dtype.scalar.name))
            return TensorHandle(np.where(inside, loaded.data, padding), loaded.dtype)
        return loaded

    # for people

    def create_print(self, prefix: Any, hex: Any, values: Any, is_signed: Any) -> None:
        super().create_print(prefix, hex, values if hex else [_float32(value) for value in values], is_signed)
