"""Importing generated modules without Triton's tokenizing them: three quarters of the time of an import."""

from __future__ import annotations

import inspect
import linecache
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

_LOCK = threading.RLock()


class _Inspect(ModuleType):
    """`inspect` with a quick `getsourcelines`, for `@triton.jit` to look its functions up by."""

    def __init__(self) -> None:
        super().__init__("inspect")

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    @staticmethod
    def getsourcelines(found: Any) -> tuple[Sequence[str], int]:
        """As `inspect` has them."""
        return source_lines(found) or inspect.getsourcelines(found)


_QUICK = _Inspect()


@contextmanager
def quickly() -> Iterator[None]:
    """Functions that are decorated inside, in any thread, have the same source as ever, found without a tokenizer where
    they are as `m3gen generate` writes them. Changes nothing under a Triton that does not look for them so."""
    from triton.runtime import jit

    if getattr(jit, "inspect", None) is not inspect:  # another Triton, or inside already
        yield
        return
    with _LOCK:
        jit.inspect = _QUICK
        try:
            yield
        finally:
            jit.inspect = inspect


def source_lines(found: Any) -> tuple[list[str], int] | None:
    """What `inspect.getsourcelines` says of a function at the left edge of its file, formatted as generated modules
    are; None for any other, of which only a tokenizer can tell the end."""
    if type(found) is not FunctionType or hasattr(found, "__wrapped__"):
        return None
    linecache.checkcache(found.__code__.co_filename)  # it may have been written anew since
    lines = linecache.getlines(found.__code__.co_filename, found.__globals__)
    first = found.__code__.co_firstlineno - 1
    if not (0 <= first < len(lines) and lines[first].startswith(("@", "def "))):
        return None
    body = _body(lines, first)
    if body is None:
        return None
    end = next((at for at in range(body, len(lines)) if not lines[at].startswith((" ", "\n"))), len(lines))
    while end > body and lines[end - 1] == "\n":
        end -= 1
    block = lines[first:end]
    text = "".join(block)
    odd = text.count('"""') % 2 or "'''" in text or "\\\n" in text or "\t" in text or "\f" in text
    if end == body or odd or block[-1].lstrip().startswith("#") or not block[-1].endswith("\n"):
        return None
    return block, first + 1


def _body(lines: Sequence[str], first: int) -> int | None:
    """Where the body begins: behind decorators, each on a line or closed by a bare one, and a signature like that."""
    at = first
    while at < len(lines) and lines[at].startswith("@"):
        at = _closed(lines, at, (")\n",)) if lines[at].endswith("(\n") else at + 1
    if at >= len(lines) or not lines[at].startswith("def "):
        return None
    at = _closed(lines, at, (")", "]")) if lines[at].endswith(("(\n", "[\n")) else at + 1
    return at if lines[at - 1].endswith(":\n") else None


def _closed(lines: Sequence[str], at: int, ends: tuple[str, ...]) -> int:
    """The line behind the first one from `at` on that begins with one of `ends`."""
    return next((n + 1 for n in range(at + 1, len(lines)) if lines[n].startswith(ends)), len(lines))
