"""One candidate in a worker: its machine code, and for AMD what a run of it on a small load shows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from m3gen.codegen.launch import Launch
from m3gen.compiler.candidate import compile_candidate, facts_cache
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate.dynamics import DYNAMICS, Dynamics, Sample
from m3gen.evaluate.observed import MOST_WORKGROUPS, recalled, remember, sample_of
from m3gen.paths import cache_dir
from m3gen.targets import Vendor, architecture

if TYPE_CHECKING:
    from m3gen.emulator.kernel import Emulator


def judge_candidate(request: CompileRequest) -> CompileResult:
    """The pool's handler: `compile_candidate`, with `Dynamics` in the facts' `extra` where there is an emulator.

    A kernel whose run fails has none and is predicted from its instructions alone; the reason is in
    `extra["dynamics_failed"]`.
    """
    result = compile_candidate(request)
    if not result.ok or architecture(request.problems[0].arch).vendor is not Vendor.AMD:
        return result
    found = _dynamics(request, result)
    facts = {
        key: replace(one, extra={**one.extra, **found[key]}) if key in found else one
        for key, one in result.facts.items()
    }
    return replace(result, facts=facts)


def _dynamics(request: CompileRequest, result: CompileResult) -> dict[str, dict[str, Any]]:
    """By key of the facts. Known ones are in the cache; they depend on the code and on the version of the constants."""
    keys = list(dict.fromkeys(key for keys in result.keys for key in keys))
    known = {key: value for key in keys if (value := recalled(key)) is not None}
    if len(known) == len(keys):
        return known
    found = _run(request, result)
    for key, value in found.items():
        remember(key, value)
    return {**known, **found}


def _run(request: CompileRequest, result: CompileResult) -> dict[str, dict[str, Any]]:
    from m3gen import ops
    from m3gen.codegen import load_module, render
    from m3gen.emulator.faults import EmulationError
    from m3gen.errors import UserError
    from m3gen.evaluate import sample

    op, problem = ops.get(request.op), request.problems[-1]
    last = result.keys[-1]
    samples: dict[str, list[Sample]] = {key: [] for key in last}
    started = time.perf_counter()
    try:
        launcher = getattr(load_module(render(op, problem, request.config)), op.name)
        for load in sample.loads(op, problem, request.config):
            works = op.work(load, request.config)
            emulator = _emulator(result, last)
            with emulator.attached():
                launcher(**sample.materialise(op, load, request.config))
            for key, work, profile in zip(last, works, emulator.profiles, strict=True):
                samples[key].append(sample_of(profile, work, result.facts[key]))
    except (EmulationError, UserError, ValueError) as error:
        return {key: {"dynamics_failed": f"{type(error).__name__}: {error}"} for key in last}
    seconds = time.perf_counter() - started
    return {key: {DYNAMICS: Dynamics(tuple(found), seconds).to_dict()} for key, found in samples.items()}


def _emulator(result: CompileResult, keys: tuple[str, ...]) -> Emulator:
    """Launches run the machine code that was compiled for them, in the order of `keys`, their first workgroups only."""
    from m3gen.compiler import triton_adapter
    from m3gen.emulator.kernel import Code, Emulator
    from m3gen.emulator.program import parse

    cache = facts_cache(cache_dir() / "facts")
    compiled = iter(zip(keys, result.launches[-1], strict=True))

    class Known(Emulator):
        def code(self, kernel: Any, launch: Launch) -> Code:
            key, real = next(compiled)
            if real.kernel != launch.kernel or (assembly := cache.assembly(key)) is None:
                raise ValueError(f"no machine code of {launch.kernel}")
            signature = triton_adapter.specialise(kernel, real, architecture(self.arch)).source.signature
            parameters = tuple(name for name, kind in signature.items() if kind != "constexpr")
            facts = result.facts[key]
            return Code(launch.kernel, assembly, parse(assembly), facts.num_warps, facts.shared_bytes, parameters)

    return Known(result.facts[keys[0]].arch, late=False, profile=True, workgroups=MOST_WORKGROUPS)
