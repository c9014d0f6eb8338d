"""Values to put into a store, and scripts that run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import m3gen
from m3gen.compiler.facts import KernelFacts, LoopFacts
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.evaluate.verification import CaseResult, Verification
from m3gen.space.config import Config
from m3gen.spec import Problem, Status

ROOT = Path(m3gen.__file__).parents[1]

# The interpreter itself may lie where only root can read: everything is imported before.
_DROP_PRIVILEGES = """
import os
from m3gen.store import Store
Store.open("sqlite://").close()
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def problem(**changes: Any) -> Problem:
    return Problem(**{"op": "sparse_decode", "arch": "gfx942", "compute_units": 304, **changes})


def config(number: int = 0) -> Config:
    return Config({"BLOCK_N": 16 << (number % 4), "SPLITS": number, "FUSED": number % 2 == 0, "CACHE": ".cg"})


def facts(number: int = 0, *, compiler: str = "triton-3.9.0") -> KernelFacts:
    loop = LoopFacts(
        label="LBB0_1",
        depth=1,
        instructions=90,
        mix={"matrix": 8, "load": 4},
        matrix_cycles=64,
        load_bytes_per_lane=64,
        load_widths={"16": 4},
        shared_read_bytes_per_lane=32,
        shared_write_bytes_per_lane=32,
        waits=3,
        barriers=1,
        branches=1,
    )
    return KernelFacts(
        kernel="sparse_decode_kernel",
        arch="gfx942",
        num_warps=4,
        registers=100 + number,
        accumulation_registers=16,
        scalar_registers=40,
        vector_spills=0,
        scalar_spills=0,
        scratch_bytes=0,
        shared_bytes=16384,
        workgroups_per_cu=2,
        waves_per_simd=2.0,
        occupancy_limit="registers",
        instructions=400,
        mix={"matrix": 8, "load": 4, "other": 388},
        matrix_instructions={"v_mfma_f32_16x16x16_bf16": 8},
        matrix_cycles=64,
        load_widths={"16": 4},
        loops=(loop,),
        code_bytes=4096,
        compile_seconds=0.25,
        compiler=compiler,
        code_sha=f"{number:064x}",
        extra={"waitcnt": [1, 2]},
    )


def predicted(value_us: float, **changes: Any) -> Evaluation:
    return Evaluation(
        **{
            "stage": Stage.PREDICTED,
            "status": Status.OK,
            "judge": "predict-amd-1",
            "value_us": value_us,
            "low_us": value_us * 0.8,
            "high_us": value_us * 1.25,
            "terms": {"memory": value_us * 0.7, "launch": 1.5},
            "limit": "memory",
            "seconds": 0.25,
            **changes,
        }
    )


def measured(value_us: float, **changes: Any) -> Evaluation:
    return predicted(
        value_us, **{"stage": Stage.MEASURED, "judge": "measure-1", "samples_us": (value_us,) * 3, **changes}
    )


def failed(status: Status, **changes: Any) -> Evaluation:
    return Evaluation(
        **{"stage": Stage.PREDICTED, "status": status, "judge": "predict-amd-1", "reason": "why", **changes}
    )


def verified(status: Status = Status.OK, **changes: Any) -> Verification:
    case = CaseResult(name="padding", grid="(4, 1, 1)", status=status, row_rms=1e-3, mean_abs=1e-4, max_abs=0.5)
    return Verification(
        **{"status": status, "on": "interpreter", "source_sha": "source-1", "cases": (case,), **changes}
    )


def start(script: str, *arguments: object, stdin: int | None = None) -> subprocess.Popen[str]:
    """A Python process that runs `script` with `arguments` as its sys.argv[1:]."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment,
        cwd="/",
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=stdin,
    )


def run_unprivileged(script: str, *arguments: object) -> str:
    """The output of a script run by a user who may only do what the file modes say."""
    process = start(_DROP_PRIVILEGES + script, *arguments)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output
