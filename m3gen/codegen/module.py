"""Load a `KernelSource` as a module whose source Triton and tracebacks can find."""

from __future__ import annotations

import linecache
import types

from m3gen.codegen.source import KernelSource


def load_module(source: KernelSource) -> types.ModuleType:
    """A fresh module executed from the text; nothing is written to disk or to `sys.modules`."""
    name = f"m3gen_{source.op}_{source.sha[:12]}"
    filename = f"<{name}>"
    # Triton reads a kernel's text through inspect; an entry without mtime is never dropped by checkcache.
    linecache.cache[filename] = (len(source.text), None, source.text.splitlines(keepends=True), filename)
    module = types.ModuleType(name)
    module.__file__ = filename
    exec(compile(source.text, filename, "exec"), module.__dict__)
    return module
