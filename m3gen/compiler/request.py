"""What goes into the compiling child and what comes back: values that need neither torch nor triton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts
from m3gen.space import Config
from m3gen.spec import Problem, Status


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One candidate for problems that share a signature: they differ in rows and context only."""

    op: str
    problems: tuple[Problem, ...]
    config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    """What compiling one candidate gave.

    `launches` and `keys` hold one tuple per problem of the request, in launch order; `facts` are by key, so
    launches that differ in their grid alone share them. On failure they hold what was known by then, and
    `reason` says in one line what failed. `compiled` and `cached` count kernels. `traces`: what running the kernels
    showed (`evaluate.trace.Traces` as bytes), by the name that the facts' `extra["trace"]` gives it.
    """

    status: Status
    reason: str = ""
    launches: tuple[tuple[Launch, ...], ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    facts: Mapping[str, KernelFacts] = field(default_factory=dict)
    source_sha: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)
    compiler: str = ""
    seconds: float = 0.0
    compiled: int = 0
    cached: int = 0
    traces: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status is Status.OK
