"""One candidate in a worker: its machine code, and for AMD what a run of it on a small load shows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from m3gen import ops
from m3gen.codegen.launch import Launch
from m3gen.compiler.candidate import compile_candidate, facts_cache
from m3gen.compiler.compile import one_line
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate import sample
from m3gen.evaluate.dynamics import DYNAMICS, Dynamics, Sample
from m3gen.evaluate.observed import MOST_WORKGROUPS, recalled, remember, sample_of
from m3gen.paths import cache_dir
from m3gen.spec import Problem
from m3gen.targets import Vendor, architecture

if TYPE_CHECKING:
    from m3gen.emulator.kernel import Emulator


def judge_candidate(request: CompileRequest) -> CompileResult:
    """The pool's handler: `compile_candidate`, then `observed`."""
    return observed(request, compile_candidate(request))


def observed(request: CompileRequest, result: CompileResult) -> CompileResult:
    """The result with `Dynamics` in the facts' `extra` where there is an emulator for the machine code.

    A kernel whose run fails has none and is predicted from its instructions alone; the reason is in
    `extra["dynamics_failed"]`.
    """
    if not result.ok or architecture(request.problems[0].arch).vendor is not Vendor.AMD:
        return result
    found: dict[str, dict[str, Any]] = {}
    # Problems of one signature mostly run the same kernels; of those that do, one is enough.
    for number in {keys: number for number, keys in enumerate(result.keys)}.values():
        found |= _dynamics(request, result, number)
    facts = {key: replace(one, extra={**one.extra, **found[key]}) for key, one in result.facts.items()}
    return replace(result, facts=facts)


def _dynamics(request: CompileRequest, result: CompileResult, number: int) -> dict[str, dict[str, Any]]:
    """By key, for the kernels of the `number`-th problem: from the cache, where they are kept by the version of the
    constants, or from running them. What fails is not kept; where the cache cannot be written nothing is."""
    op, problem, keys = ops.get(request.op), request.problems[number], result.keys[number]
    loads = tuple(sample.loads(op, problem, request.config))
    works = [op.work(load, request.config) for load in loads]
    # Configurations that differ in their grids share code, but not the iterations at which it can be sampled.
    names = {
        key: "-".join([key, *(f"{work[place].loop_trips:g}" for work in works)]) for place, key in enumerate(keys)
    }
    known = {key: found for key in keys if (found := recalled(names[key])) is not None}
    if len(known) < len(set(keys)):
        for key, found in _run(request, result, number, loads).items():
            if key not in known and DYNAMICS in found:
                remember(names[key], found)
            known.setdefault(key, found)
    return known


def _run(
    request: CompileRequest, result: CompileResult, number: int, loads: Sequence[Problem]
) -> dict[str, dict[str, Any]]:
    """By key of the facts, for the kernels of the `number`-th problem."""
    from m3gen.codegen import load_module, render

    op, problem, keys = ops.get(request.op), request.problems[number], result.keys[number]
    samples: dict[str, list[Sample]] = {key: [] for key in keys}
    started = time.perf_counter()
    try:
        launcher = getattr(load_module(render(op, problem, request.config)), op.name)
        emulator = _emulator(result, number)
        for load in loads:
            emulator.profiles.clear()
            with emulator.attached():
                launcher(**sample.materialise(op, load, request.config))
            for key, work, profile in zip(keys, op.work(load, request.config), emulator.profiles, strict=True):
                samples[key].append(sample_of(profile, work, result.facts[key]))
    except Exception as error:  # of the kernel or of the emulator: the candidate can be predicted without
        return {key: {"dynamics_failed": one_line(error)} for key in keys}
    seconds = time.perf_counter() - started
    return {key: {DYNAMICS: Dynamics(tuple(found), seconds).to_dict()} for key, found in samples.items()}


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
