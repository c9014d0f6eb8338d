from __future__ import annotations

import inspect
import linecache
import sys

from m3gen.codegen import KernelSource, load_module

SOURCE = KernelSource("op", "f", '"""Doc."""\n\n\ndef f(x):\n    return x + 1\n', {})


def test_source_and_tracebacks_find_the_text() -> None:
    module = load_module(SOURCE)
    linecache.checkcache()
    assert inspect.getsource(module.f) == "def f(x):\n    return x + 1\n"
    assert module.f(1) == 2


def test_two_loads_are_two_modules_and_neither_is_registered() -> None:
    one, two = load_module(SOURCE), load_module(SOURCE)
    one.f = None
    assert two.f is not None
    assert one.__name__ not in sys.modules
