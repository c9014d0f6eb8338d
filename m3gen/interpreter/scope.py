"""Running kernels in the interpreter of a process whose Triton was imported for compiling.

Stock Triton decides at decoration: with `TRITON_INTERPRET` unset, `tl.sum`, `tl.max` and the like are
compiled functions that interpreted kernels cannot call, and a device call leaves `triton.language` patched
for good. Here the language is patched once a launch, whole, and put back after it, and a compiled function
that is called or launched meanwhile runs as an interpreted one. Compiling works as ever outside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton import knobs
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as stock
from triton.runtime.jit import JITFunction

from m3gen.interpreter import overflow, sorting

_LOCK = threading.RLock()  # what a launch patches belongs to the process
_patch_language = stock._patch_lang
_EVERY_MODULE = SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
_interpreted: dict[Callable[..., Any], Any] = {}


def interpreted(kernel: Any) -> Any:
    """The interpreted form of a `@triton.jit` function, one and the same for each; launched as usual."""
    if not isinstance(kernel, JITFunction):
        return kernel
    if kernel.fn not in _interpreted:
        _interpreted[kernel.fn] = stock.InterpretedFunction(kernel.fn)
    return _interpreted[kernel.fn]


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value` inside; put back, or taken away again, after."""
    own = vars(owner)
    missing = object()
    before = own.get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def interpret_knob() -> Iterator[None]:
    """`knobs.runtime.interpret` is True inside. Not by assignment, which would export TRITON_INTERPRET to
    children that start meanwhile."""
    values, missing = vars(knobs.runtime), object()
    before = values.get("interpret", missing)
    values["interpret"] = True
    try:
        yield
    finally:
        if before is missing:
            del values["interpret"]
        else:
            values["interpret"] = before


@contextmanager
def language() -> Iterator[None]:
    """`triton.language` is the interpreter's inside, helpers written in Triton included."""
    with _LOCK, interpret_knob(), np.errstate(all="ignore"):  # GPUs do not trap
        scope = _patch_language(_EVERY_MODULE)
        scope.set_attr(tl.dtype, "to_ir", lambda dtype, builder: dtype)  # 3.6 lacks e4m3fnuz and e5m2fnuz
        # 3.6 converts an array of one element, which numpy 2.4 refuses.
        scope.set_attr(tl.tensor, "__index__", lambda scalar: int(scalar.handle.data.squeeze()))
        scope.set_attr(TritonSemantic, "binary_op_sanitize_overflow_impl", overflow.check)
        scope.set_attr(tl, "sort", sorting.sort)
        scope.set_attr(tl, "topk", sorting.topk)
        scope.set_attr(JITFunction, "__call__", lambda kernel, *a, **k: interpreted(kernel)(*a, **k))
        try:
            yield
        finally:
            scope.restore()


class ScopedExecutor(stock.GridExecutor):  # type: ignore[misc]
    """A launch: every program of the grid in turn, under one patching of the language."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with language():
            super().__call__(*args, **kwargs)


class NoScope:
    """Stands for the patching that stock Triton does at every launch and every device call."""

    def __init__(self, fn: Any) -> None:
        del fn

    def restore(self) -> None:
        pass


def _run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    return interpreted(kernel).run(*args, grid=grid, warmup=warmup, **kwargs)


@contextmanager
def interpreting() -> Iterator[None]:
    """Every kernel launched inside runs in the interpreter, decorated inside or long before."""
    with ExitStack() as stack:
        stack.enter_context(interpret_knob())
        stack.enter_context(replaced(JITFunction, "run", _run))
        yield
