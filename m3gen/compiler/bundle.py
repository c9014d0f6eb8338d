"""Machine code for a bundle, in the child: entries of Triton's own cache, under the keys that the JIT will ask for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from m3gen.codegen.source import KernelSource
from m3gen.codegen.trace import trace
from m3gen.compiler import triton_adapter
from m3gen.compiler.compile import one_line
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.targets import architecture

HANDLER = "m3gen.compiler.bundle:build_entries"


@dataclass(frozen=True, slots=True)
class BundleRequest:
    """A generated module of the package, and a problem that it runs. `folder` takes the files."""

    op: str
    module: str
    problem: Problem
    config: Config
    folder: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of Triton's cache: the name of its folder there, and the SHA-256 of each file in it."""

    kernel: str
    folder: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class BundleResult:
    """The entries of each launch, in launch order."""

    status: Status
    reason: str = ""
    entries: tuple[Entry, ...] = ()


def build_entries(request: BundleRequest) -> BundleResult:
    """Compile every launch of a module as the JIT would on the device, keeping what its cache keeps.

    The module itself is imported and not its text run: the JIT's keys hold the line on which a kernel begins.
    """
    import triton

    from m3gen import ops

    triton_adapter.require_compiler()
    target = architecture(request.problem.arch)
    try:
        module = import_module(request.module)
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        source = KernelSource(op=request.op, entry=request.op, text=text, templates={})
        launches = trace(source, ops.get(request.op).example(request.problem, request.config))
        entries = []
        with _keeping(request.folder):
            for launch in launches:
                kernel = triton_adapter.jit_function(module, launch.kernel)
                ready = triton_adapter.specialise(kernel, launch, target)
                made = triton.compile(ready.source, target=ready.target, options=dict(ready.options))
                entries.append(_entry(launch.kernel, [Path(path) for path in made.metadata_group.values()]))
    except OSError:
        raise
    except Exception as error:
        return BundleResult(Status.COMPILE, one_line(error))
    return BundleResult(Status.OK, entries=tuple(entries))


def _entry(kernel: str, paths: list[Path]) -> Entry:
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return Entry(kernel, paths[0].parent.name, files)


@contextmanager
def _keeping(folder: str) -> Iterator[None]:
    """Triton's cache is `folder`, and keeps nothing but what a launch needs."""
    from triton import knobs

    with knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir = folder
        knobs.compilation.store_binary_only = True
        yield


def manifest_text(fields: dict[str, object]) -> str:
    """Sorted, so that the same code gives the same manifest."""
    return json.dumps(fields, indent=1, sort_keys=True) + "\n"
