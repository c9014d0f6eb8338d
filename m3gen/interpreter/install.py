"""Put the corrections in place, and say whether the interpreter is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from m3gen.errors import UserError
from m3gen.interpreter.versions import check

_installed = False


def install() -> None:
    """Make Triton's interpreter right for bf16 and the 8-bit floats, in this process; once is enough.

    Compiling is not touched. Raises `UserError` for a Triton version the corrections are not known to fit.
    """
    global _installed
    if _installed:
        return
    import triton

    check(triton.__version__)
    from triton.runtime import interpreter as stock

    from m3gen.interpreter.builder import CorrectedBuilder, encoded, numbers
    from m3gen.interpreter.reductions import CorrectedReduceOps, CorrectedScanOps
    from m3gen.interpreter.scope import NoScope, ScopedExecutor

    stock.InterpreterBuilder = CorrectedBuilder
    stock.interpreter_builder = CorrectedBuilder()
    # Without `debug` assertions in kernels do nothing, those of overflow checks included.
    stock.interpreter_builder.options = replace(stock.interpreter_builder.options, debug=True)
    stock.interpreter_semantic.builder = stock.interpreter_builder
    stock.ReduceOps, stock.ScanOps = CorrectedReduceOps, CorrectedScanOps
    stock.GridExecutor, stock._patch_lang = ScopedExecutor, NoScope

    if (stock_value := getattr(stock, "_mxfp_value_handle_to_float32", None)) is not None:  # not in 3.6

        def scaled_operand(handle: Any) -> Any:
            return numbers(handle) if encoded(handle) else stock_value(handle)

        stock._mxfp_value_handle_to_float32 = scaled_operand
    _installed = True


def active() -> bool:
    """Whether kernels decorated or launched now run in the corrected interpreter."""
    if not _installed:
        return False
    from triton import knobs

    return bool(knobs.runtime.interpret)


def require() -> None:
    """`UserError` unless `active()`."""
    if not active():
        raise UserError(
            "kernels would be compiled, not interpreted: set TRITON_INTERPRET=1 before importing Triton and "
            "call m3gen.interpreter.install(), or run them inside m3gen.interpreter.interpreting()"
        )


@contextmanager
def interpreting() -> Iterator[None]:
    """Kernels launched inside run in the corrected interpreter, whether or not TRITON_INTERPRET is set.

    It serves kernels decorated inside and before; those decorated inside stay interpreted. The switch
    belongs to the process: no other thread may launch or compile kernels meanwhile. Raises `UserError` as
    `install` does.
    """
    install()
    from m3gen.interpreter import scope

    with scope.interpreting():
        yield


@contextmanager
def overflow_unchecked() -> Iterator[None]:
    """Launches inside skip the interpreter's check of every 32-bit integer operation: for kernels that wrap on
    purpose, and for runs that repeat a checked one. Inside `interpreting()` or after `install()`."""
    from triton.runtime import interpreter as stock

    builder = stock.interpreter_builder
    before = builder.options
    builder.options = replace(before, sanitize_overflow=False)
    try:
        yield
    finally:
        builder.options = before


def interpreted(kernel: Any) -> Any:
    """One `@triton.jit` kernel to launch in the corrected interpreter, `interpreted(kernel)[grid](...)`.

    Raises `UserError` as `install` does.
    """
    install()
    from m3gen.interpreter import scope

    return scope.interpreted(kernel)
