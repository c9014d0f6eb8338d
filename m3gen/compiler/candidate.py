"""One candidate in the child: render, trace, specialise, and compile what the facts cache does not have."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from m3gen.codegen.launch import Launch
from m3gen.codegen.module import load_module
from m3gen.codegen.source import KernelSource
from m3gen.compiler.cache import FactsCache
from m3gen.compiler.compile import CompileError, Prepared, compile_prepared, one_line, prepare, resource_fault
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.fingerprint import fingerprint
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.compiler.triton_adapter import require_compiler
from m3gen.paths import cache_dir
from m3gen.spec import Problem, Status
from m3gen.targets import Architecture, architecture


def compile_candidate(request: CompileRequest) -> CompileResult:
    """The pool's handler. Every failure of the candidate is a status; `M3GEN_CACHE` moves the facts cache.

    Raises `UserError` for what no candidate can help: an unwritable cache, an interpreting process, a full disk.
    COMPILE when the template, the kernel or an option is wrong, RUNTIME when the launcher raises, RESOURCES
    when every kernel compiles but one cannot be launched on the architecture.
    """
    require_compiler()
    started = time.perf_counter()
    run = _Candidate(request, facts_cache(cache_dir() / "facts"))
    try:
        run.compile()
        status, reason = (Status.RESOURCES, run.fault) if run.fault else (Status.OK, "")
    except _Failure as failure:
        status, reason = failure.status, failure.reason
    return run.result(status, reason, time.perf_counter() - started)


@cache
def facts_cache(root: Path) -> FactsCache:
    """The opened cache at `root`, once per process."""
    return FactsCache.open(root)


class _Failure(Exception):
    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Candidate:
    """What is known of one request so far, so that a failure still tells all that came before it."""

    def __init__(self, request: CompileRequest, cache: FactsCache) -> None:
        self.request = request
        self.cache = cache
        self.source: KernelSource | None = None
        self.launches: list[tuple[Launch, ...]] = []
        self.keys: list[tuple[str, ...]] = []
        self.facts: dict[str, KernelFacts] = {}
        self.compiled = 0
        self.cached = 0
        self.fault = ""  # the first reason why a kernel cannot be launched

    def compile(self) -> None:
        problems = self.request.problems
        target = architecture(problems[0].arch)
        self.source = source = self._render(problems[0])
        try:
            module = load_module(source)
        except Exception as error:
            raise _Failure(Status.COMPILE, f"the module does not load: {one_line(error)}") from error
        prepared: dict[Launch, Prepared] = {}
        for problem in problems:
            launches = self._trace(source, problem)
            keys = []
            for launch in launches:
                try:
                    # Triton binds afresh each time; problems of one signature repeat most launches.
                    ready = prepared.get(launch) or prepare(module, launch, target)
                    prepared[launch] = ready
                    self._known(ready, target)
                except CompileError as error:
                    raise _Failure(Status.COMPILE, f"{launch.kernel}: {error}") from error
                keys.append(ready.key)
            self.launches.append(launches)
            self.keys.append(tuple(keys))

    def _render(self, problem: Problem) -> KernelSource:
        from m3gen.codegen import render
        from m3gen.ops import get

        op = get(self.request.op)
        try:
            return render(op, problem, self.request.config)
        except Exception as error:
            raise _Failure(Status.COMPILE, f"the template does not render: {one_line(error)}") from error

    def _trace(self, source: KernelSource, problem: Problem) -> tuple[Launch, ...]:
        from m3gen.codegen import trace
        from m3gen.ops import get

        arguments = get(self.request.op).example(problem, self.request.config)
        try:
            return trace(source, arguments)
        except Exception as error:
            raise _Failure(Status.RUNTIME, f"the launcher raises: {one_line(error)}") from error

    def _known(self, prepared: Prepared, target: Architecture) -> None:
        """Facts of the launch into `facts`: from this request, from the cache, or by compiling."""
        if prepared.key in self.facts:
            return
        facts = self.cache.get(prepared.key)
        if facts is not None:
            self.cached += 1
        else:
            compiled = compile_prepared(prepared)
            facts = compiled.facts
            self.compiled += 1
            self.cache.put(prepared.key, facts, compiled.assembly)
        self.facts[prepared.key] = facts
        if not self.fault and (fault := resource_fault(facts, target)):
            self.fault = f"{facts.kernel}: {fault}"

    def result(self, status: Status, reason: str, seconds: float) -> CompileResult:
        return CompileResult(
            status=status,
            reason=reason,
            launches=tuple(self.launches),
            keys=tuple(self.keys),
            facts=self.facts,
            source_sha=self.source.sha if self.source else "",
            templates=dict(self.source.templates) if self.source else {},
            compiler=fingerprint(),
            seconds=seconds,
            compiled=self.compiled,
            cached=self.cached,
        )
