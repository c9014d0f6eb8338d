"""Run a module's launcher without a device and write down each kernel launch it would make."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from m3gen.codegen.launch import Argument, Launch, Pointer
from m3gen.codegen.module import load_module
from m3gen.codegen.source import KernelSource

_INT_NAMES = {"int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "i1"}


def trace(source: KernelSource, arguments: Mapping[str, Any]) -> tuple[Launch, ...]:
    """The launches of `source.entry(**arguments)`, in order; tensors may be on torch's meta device.

    The launcher itself runs, with each kernel replaced by a recorder, so what is compiled is what will be
    launched. Whatever the launcher raises passes through.
    """
    from triton.runtime.jit import JITFunction

    module = load_module(source)
    launches: list[Launch] = []
    for name, value in vars(module).copy().items():
        if isinstance(value, JITFunction):
            setattr(module, name, _Recorder(name, value, launches))
    getattr(module, source.entry)(**arguments)
    return tuple(launches)


class _Recorder:
    def __init__(self, name: str, kernel: Any, launches: list[Launch]) -> None:
        self._name = name
        self._signature = inspect.signature(kernel.fn)
        self._launches = launches

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*args: Any, **kwargs: Any) -> None:
            parameters = self._signature.parameters
            options = {k: v for k, v in kwargs.items() if k not in parameters}
            bound = self._signature.bind(*args, **{k: v for k, v in kwargs.items() if k in parameters})
            bound.apply_defaults()
            x, y, z = (*grid, 1, 1)[:3]
            self._launches.append(
                Launch(
                    kernel=self._name,
                    arguments=tuple((k, argument(v)) for k, v in bound.arguments.items()),
                    options=tuple(sorted(options.items())),
                    grid=(x, y, z),
                )
            )

        return launch


def argument(value: Any) -> Argument:
    """What a launch knows of an argument. `TypeError` for what no kernel takes."""
    if hasattr(value, "data_ptr"):
        offset = value.storage_offset() * value.element_size()
        return Pointer(
            dtype=_dtype_name(value.dtype),
            alignment=min(256, offset & -offset) if offset else 256,
            storage_bytes=value.untyped_storage().nbytes(),
        )
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a kernel argument of type {type(value).__name__} cannot be traced")


def _dtype_name(dtype: Any) -> str:
    from m3gen.spec import DTYPES

    torch_name = str(dtype).removeprefix("torch.")
    for known in DTYPES.values():
        if known.torch_name == torch_name:
            return known.name
    return _INT_NAMES.get(torch_name, torch_name)
