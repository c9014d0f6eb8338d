"""Winners made by hand: small problems of sparse_decode, configs of its space, verdicts of the gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.codegen.render import render
from m3gen.compiler.fingerprint import fingerprint
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.verification import Verification
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Winner
from m3gen.tables.findings import Finding

OP = ops.get("sparse_decode")
DAY = "2026-03-01T12:00:00.000000+00:00"


def problem(**changes: Any) -> Problem:
    """Small enough to interpret: lists of 2 pages, 32 tokens each."""
    base: dict[str, Any] = {
        "op": "sparse_decode",
        "arch": "gfx942",
        "compute_units": 304,
        "group_size": 4,
        "head_dim": 128,
        "page_size": 32,
        "topk": 2,
        "rows": 1,
        "context": 1024,
    }
    return Problem(**(base | changes))


def fp8(**changes: Any) -> Problem:
    return problem(**({"kv_dtype": "e4m3fnuz", "kv_scale": "scalar"} | changes))


def config(of: Problem, **changes: Any) -> Config:
    """The field's config with changes."""
    space = OP.space(of, device_of(of))
    fallback = {parameter.name: parameter.default for parameter in space.parameters}
    default = OP.field(of, device_of(of)).to_dict()
    return space.canonical({**fallback, **default, **changes})


def winner(
    of: Problem,
    us: float = 10.0,
    *,
    chosen: Config | None = None,
    stage: Stage = Stage.PREDICTED,
    judge: str = "predict-amd-1",
    status: Status = Status.OK,
    on: str = "machine-code",
    day: str = DAY,
) -> Winner:
    chosen = chosen or config(of)
    return Winner(
        problem=of,
        config=chosen,
        evaluation=Evaluation(
            stage=stage,
            status=Status.OK,
            judge=judge,
            value_us=us,
            low_us=us * 0.9,
            high_us=us * 1.2,
            limit="memory",
            facts=("facts of " + chosen.sha[:8],),
            environment={"compiler": fingerprint()},
        ),
        verification=Verification(
            status=status,
            on=on,
            source_sha=render(OP, of, chosen).sha,
            environment={"compiler": fingerprint()},
        ),
        compiler=fingerprint(),
        created_at=day,
    )


def finding(of: Problem, us: float = 10.0, *, baseline_us: float | None = 20.0, **changes: Any) -> Finding:
    return Finding(winner=winner(of, us, **changes), baseline_us=baseline_us, registers=128)


def stale(found: Finding) -> Finding:
    """The gate checked another text."""
    verdict = replace(found.winner.verification, source_sha="0" * 64)
    return replace(found, winner=replace(found.winner, verification=verdict))
