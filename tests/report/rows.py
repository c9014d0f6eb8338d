"""Hand-made results."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType

from m3gen.evaluate.evaluation import Stage
from m3gen.evaluate.verification import CaseResult, Verification
from m3gen.search.progress import Incumbent, Progress
from m3gen.search.result import SessionResult, WinnerRow
from m3gen.space import Config
from m3gen.spec import Problem, Status
from tests import problems

DEFAULT = Config({"tile_n": 128, "splits": 16, "loads": "apart", "masked_loads": True, "num_warps": 4})
TUNED = Config({"tile_n": 64, "splits": 16, "loads": "apart", "masked_loads": False, "num_warps": 4})


def problem(arch: str = "gfx942", **fields: Any) -> Problem:
    return problems.sparse_decode(arch, **fields)[0]


def verification(status: Status = Status.OK, **changes: Any) -> Verification:
    cases = (
        CaseResult(name="padding", grid="awkward", status=Status.OK, row_rms=1e-3, mean_abs=2e-5, max_abs=0.125),
        CaseResult(name="peers", grid="peers", status=status, row_rms=2e-3, mean_abs=1e-5, max_abs=0.5),
    )
    return Verification(
        **{
            "status": status,
            "on": "interpreter",
            "source_sha": "s",
            "cases": cases,
            "seconds": 12.0,
            **changes,
        }
    )


def row(of: Problem | None = None, **changes: Any) -> WinnerRow:
    return WinnerRow(
        **{
            "problem": of or problem(),
            "config": TUNED,
            "stage": Stage.PREDICTED,
            "judge": "predict-amd-1",
            "value_us": 8.0,
            "low_us": 5.2,
            "high_us": 10.8,
            "baseline_us": 12.0,
            "ratio": 1.5,
            "limit": "memory",
            "registers": 128,
            "waves_per_simd": 2.0,
            "workgroups_per_cu": 4,
            "verification": verification(),
            "field_config": DEFAULT,
            **changes,
        }
    )


def measured(of: Problem | None = None, **changes: Any) -> WinnerRow:
    return row(of, **{"stage": Stage.MEASURED, "judge": "measure-1", **changes})


def progress(**changes: Any) -> Progress:
    return Progress(
        **{
            "phase": "search",
            "refused": {"load_width": 1200, "page_parts": 34},
            "space_sizes": {problem(): 5000},
            "evaluated": 40,
            "stored": 10,
            "compiled": 21,
            "cached": 9,
            "predicted": 37,
            "verified": 0,
            "failed": {Status.COMPILE_ABORT: 1, Status.TIMEOUT: 2},
            "best": {problem(): Incumbent(TUNED, 8.0, 12.0, Stage.PREDICTED)},
            "elapsed_s": 65.0,
            "remaining_s": 125.0,
            **changes,
        }
    )


def result(*rows: WinnerRow, ended: str = "budget", **changes: Any) -> SessionResult:
    return SessionResult(rows=rows, progress=progress(phase="done", remaining_s=None, **changes), ended=ended)  # type: ignore[arg-type]


def printed(renderable: RenderableType, width: int = 80) -> str:
    """What a terminal of that width shows; nothing may be cut or run over."""
    console = Console(width=width, record=True, highlight=False, markup=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable)
    text = console.export_text()
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    return text
