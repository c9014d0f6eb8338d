"""Tables for the tiny model, with configurations that launch few programs: an interpreter runs them one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from m3gen import ops
from m3gen.codegen import generate, render
from m3gen.codegen.generate import device_of
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.place import gates
from m3gen.evaluate.verification import Verification
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Winner
from m3gen.tables.export import export
from m3gen.tables.findings import Finding
from m3gen.tables.load import load

ARCH = "gfx942"
_CHANGES: dict[str, dict[str, Any]] = {
    "index_select": {"form": "scores", "splits": 1},
    "sparse_decode": {"splits": 1, "tile_n": 64},
}


def make(home: Path, problems: list[Problem]) -> Path:
    """`home/tuning_db`, and beside it the modules; for those of `problems` whose default launches many programs."""
    found = [_finding(problem) for problem in problems if problem.op in _CHANGES]
    for path in export(found, home / "tuning_db"):
        generate(load(path), home / "generated")
    return home / "tuning_db"


def _config(problem: Problem) -> Config:
    op, device = ops.get(problem.op), device_of(problem)
    space = op.space(problem, device)
    values = op.default(problem, device).to_dict() | _CHANGES[problem.op]
    fallback = {parameter.name: parameter.default for parameter in space.parameters}
    return space.canonical(fallback | values)


def _finding(problem: Problem) -> Finding:
    config = _config(problem)
    source = render(ops.get(problem.op), problem, config)
    evaluation = Evaluation(
        stage=Stage.PREDICTED,
        status=Status.OK,
        judge="predict-amd-1",
        value_us=1.0,
        low_us=0.9,
        high_us=1.2,
        limit="latency",
        facts=(),
        environment={"compiler": "by hand"},
    )
    winner = Winner(
        problem=problem,
        config=config,
        evaluation=evaluation,
        verification=Verification(
            status=Status.OK,
            on=gates(problem.arch)[-1],
            source_sha=source.sha,
            environment={"compiler": "by hand"},
        ),
        compiler="by hand",
        created_at="2026-03-01T12:00:00.000000+00:00",
    )
    return Finding(winner=winner, baseline_us=None, registers=1)
