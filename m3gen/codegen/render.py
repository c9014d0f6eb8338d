"""Op, problem and config in, `KernelSource` out: the one place where Jinja runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from m3gen.codegen.source import KernelSource
from m3gen.ops.base import Op
from m3gen.space import Config
from m3gen.spec import Problem

if TYPE_CHECKING:
    import jinja2


def render(op: Op, problem: Problem, config: Config, provenance: Sequence[str] = ()) -> KernelSource:
    """The module of one candidate.

    The text depends on `op.variant(problem)` and `config` alone, never on the load; `provenance` lines go into
    the module's docstring. Raises `jinja2.UndefinedError` when a template asks for a flag that the op does not
    give.
    """
    flags = {**op.variant(problem), **op.flags(problem, config)}
    environment = _environment()
    body = environment.get_template(op.template).render(flags).strip()
    text = environment.get_template("module.py.jinja").render(
        title=op.title, provenance=list(provenance), body=body
    )
    return KernelSource(op=op.name, entry=op.name, text=text.rstrip() + "\n", templates=template_shas(op.template))


def template_shas(name: str) -> dict[str, str]:
    """SHA-256 of a template and of every template it includes or imports, the frame among them."""
    shas: dict[str, str] = {}
    pending = [name, "module.py.jinja"]
    while pending:
        current = pending.pop()
        if current not in shas:
            text = _read(current)
            shas[current] = hashlib.sha256(text.encode()).hexdigest()
            pending += _references(current)
    return dict(sorted(shas.items()))


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("m3gen.templates", ""),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # the output is Python
    )


@cache
def _read(name: str) -> str:
    from importlib.resources import files

    return files("m3gen.templates").joinpath(name).read_text(encoding="utf-8")


@cache
def _references(name: str) -> tuple[str, ...]:
    from jinja2 import meta

    found = meta.find_referenced_templates(_environment().parse(_read(name)))
    return tuple(sorted(reference for reference in found if reference))
