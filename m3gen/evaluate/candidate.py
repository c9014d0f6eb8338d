"""One candidate in a worker: its machine code, and for AMD what a run of it on a small load shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from m3gen import ops
from m3gen.codegen.launch import Launch
from m3gen.compiler.candidate import compile_candidate, facts_cache
from m3gen.compiler.compile import one_line
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate import sample
from m3gen.evaluate.dynamics import TRACE
from m3gen.evaluate.observed import MOST_WORKGROUPS, Kept, ablated, name_of, recalled, remember, trace_of
from m3gen.evaluate.trace import Trace, Traces
from m3gen.paths import cache_dir
from m3gen.spec import Problem
from m3gen.targets import Vendor, architecture

if TYPE_CHECKING:
    from m3gen.emulator.kernel import Emulator


def judge_candidate(request: CompileRequest) -> CompileResult:
    """The pool's handler: `compile_candidate`, then `observed`."""
    return observed(request, compile_candidate(request))


def ablate_candidate(request: CompileRequest) -> CompileResult:
    """`judge_candidate`, with what the simulation says when a term is left out of it."""
    return observed(request, compile_candidate(request), ablated)


def observed(
    request: CompileRequest,
    result: CompileResult,
    extra: Callable[[Kept, KernelFacts], dict[str, Any]] = lambda kept, _: kept.extra,
) -> CompileResult:
    """The result with `Dynamics` in the facts' `extra` and the traces behind them, where there is an emulator for the
    machine code.

    A kernel whose run fails has none and is predicted from its instructions alone; the reason is in
    `extra["dynamics_failed"]`.
    """
    if not result.ok or architecture(request.problems[0].arch).vendor is not Vendor.AMD:
        return result
    found: dict[str, Kept | str] = {}
    # Problems of one signature mostly run the same kernels; of those that do, one is enough.
    for number in {keys: number for number, keys in enumerate(result.keys)}.values():
        found |= _kept(request, result, number)
    facts = {}
    for key, one in result.facts.items():
        kept = found[key]
        more = {"dynamics_failed": kept} if isinstance(kept, str) else extra(kept, one)
        facts[key] = replace(one, extra={**one.extra, **more})
    traces = {kept.extra[TRACE]: kept.traces for kept in found.values() if not isinstance(kept, str)}
    return replace(result, facts=facts, traces=traces)


def _kept(request: CompileRequest, result: CompileResult, number: int) -> dict[str, Kept | str]:
    """By key, for the kernels of the `number`-th problem: from the cache, or from running them, else why that failed.
    What fails is not kept; where the cache cannot be written nothing is."""
    op, problem, keys = ops.get(request.op), request.problems[number], result.keys[number]
    loads = tuple(sample.loads(op, problem, request.config))
    works = [op.work(load, request.config) for load in loads]
    names = {
        key: name_of(result.facts[key], [work[place].loop_trips for work in works])
        for place, key in enumerate(keys)
    }
    known: dict[str, Kept | str] = {}
    for key in keys:
        if (kept := recalled(names[key], result.facts[key])) is not None:
            known[key] = kept
    if len(known) < len(set(keys)):
        for key, found in _run(request, result, number, loads).items():
            if key not in known:
                known[key] = found if isinstance(found, str) else remember(names[key], found, result.facts[key])
    return known


def _run(
    request: CompileRequest, result: CompileResult, number: int, loads: Sequence[Problem]
) -> dict[str, Traces | str]:
    """By key of the facts, for the kernels of the `number`-th problem."""
    from m3gen.codegen import load_module, render

    op, problem, keys = ops.get(request.op), request.problems[number], result.keys[number]
    samples: dict[str, list[Trace]] = {key: [] for key in keys}
    started = time.perf_counter()
    try:
        launcher = getattr(load_module(render(op, problem, request.config)), op.name)
        emulator = _emulator(result, number)
        for load in loads:
            emulator.profiles.clear()
            with emulator.attached():
                launcher(**sample.materialise(op, load, request.config))
            for key, work, profile in zip(keys, op.work(load, request.config), emulator.profiles, strict=True):
                samples[key].append(trace_of(profile, work))
    except Exception as error:  # of the kernel or of the emulator: the candidate can be predicted without
        return {key: one_line(error) for key in keys}
    seconds = time.perf_counter() - started
    return {key: Traces(tuple(found), seconds) for key, found in samples.items()}


def _emulator(result: CompileResult, number: int) -> Emulator:
    """Launches run the machine code that was compiled for those of the `number`-th problem, in turn, and of each only
    the first workgroups."""
    from m3gen.compiler import triton_adapter
    from m3gen.emulator.kernel import Code, Emulator
    from m3gen.emulator.program import parse

    cache = facts_cache(cache_dir() / "facts")
    compiled = tuple(zip(result.keys[number], result.launches[number], strict=True))
    known: dict[str, Code] = {}

    class Known(Emulator):
        def code(self, kernel: Any, launch: Launch) -> Code:
            key, real = compiled[self.launches % len(compiled)]
            if real.kernel != launch.kernel or (assembly := cache.assembly(key)) is None:
                raise ValueError(f"no machine code of {launch.kernel}")
            if key not in known:
                signature = triton_adapter.specialise(kernel, real, architecture(self.arch)).source.signature
                parameters = tuple(name for name, kind in signature.items() if kind != "constexpr")
                facts = result.facts[key]
                known[key] = Code(
                    launch.kernel, assembly, parse(assembly), facts.num_warps, facts.shared_bytes, parameters
                )
            return known[key]

    arch = result.facts[result.keys[number][0]].arch
    return Known(arch, late=False, profile=True, workgroups=MOST_WORKGROUPS)
