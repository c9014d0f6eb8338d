"""`Rooms`: what a session needs from the floors below it, in one place so that tests can put fakes there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.predict import Launched
from m3gen.ops.base import Op, Work
from m3gen.search.executor import Executor, Needs, Pool
from m3gen.space import Config
from m3gen.spec import Problem
from m3gen.targets import Device


class Predict(Protocol):
    def __call__(
        self,
        launches: Sequence[Launched],
        facts: Sequence[KernelFacts],
        work: Sequence[Work],
        device: Device,
    ) -> Evaluation: ...


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """`judge`: version of the predictor for a device. `prior` and `least`: see `evaluate.prior`. `compiler`:
    fingerprint of the children's compiler. `source_sha`: identity of what a candidate renders to. The pools are
    made when first needed; payloads of `compile_pool` come from `compile_request`, which takes what to get under
    for each problem (`evaluate.rungs.ClimbRequest`), and are answered by a `CompileResult`, those of `verify_pool`
    come from `verify_request`, which also takes where to run, and are answered by a `Verification`.
    """

    op: Callable[[str], Op]
    check: Callable[[Problem, Config, Device], Evaluation | None]
    predict: Predict
    judge: Callable[[Device], str]
    compiler: Callable[[], str]
    prior: Callable[[Sequence[Work], Device], float]
    least: Callable[[Sequence[Work], Device], float]
    source_sha: Callable[[Op, Problem, Config], str]
    compile_request: Callable[[str, tuple[Problem, ...], Config, Device, tuple[float | None, ...]], Any]
    verify_request: Callable[[str, Problem, Config, str], Any]
    compile_pool: Callable[[], Pool]
    verify_pool: Callable[[], Pool]


def real_rooms(
    executor: Executor, arch: str, *, deadline_s: float, verify_deadline_s: float, cache_dir: Path
) -> Rooms:
    """The rooms of m3gen, with workers of `executor`. Imports no torch and no Triton: workers do."""
    from m3gen import ops
    from m3gen.codegen.render import render
    from m3gen.compiler.fingerprint import fingerprint
    from m3gen.compiler.request import CompileRequest
    from m3gen.evaluate import predict, prior, static
    from m3gen.evaluate.gate import SEEDS, GateRequest
    from m3gen.evaluate.place import WORKER_ENVIRONMENT
    from m3gen.evaluate.rungs import ClimbRequest
    from m3gen.evaluate.timing import TIMINGS

    def pool(handler: str, deadline: float, env: Mapping[str, str]) -> Pool:
        environment = {"M3GEN_CACHE": str(cache_dir), **env}
        return executor.pool(handler, Needs(arch), deadline_s=deadline, env=environment)

    return Rooms(
        op=ops.get,
        check=static.check,
        predict=predict.predict,
        judge=lambda device: TIMINGS[device.architecture.vendor].version,
        compiler=fingerprint,
        prior=prior.prior_us,
        least=prior.least_us,
        source_sha=lambda op, problem, config: render(op, problem, config).sha,
        compile_request=lambda op, problems, config, device, limits: ClimbRequest(
            CompileRequest(op, problems, config), device.name, limits
        ),
        verify_request=lambda op, problem, config, on: GateRequest(op, problem, config, SEEDS, on),
        compile_pool=lambda: pool("m3gen.evaluate.climb:climb_candidate", deadline_s, {}),
        verify_pool=lambda: pool("m3gen.evaluate.gate:verify_request", verify_deadline_s, WORKER_ENVIRONMENT),
    )
