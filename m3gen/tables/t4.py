"""Evaluations of a store as Kernel Tuner's T4, the results format of autotuning tools.

https://github.com/KernelTuner/kernel_tuner/blob/master/kernel_tuner/schema/T4/1.0.0/results-schema.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from m3gen.spec import Status
from m3gen.store import Record

VERSION = "1.0.0"

_INVALIDITY: Mapping[Status, str] = {
    Status.OK: "correct",
    Status.CONSTRAINT: "constraints",
    Status.RESOURCES: "constraints",
    Status.COMPILE: "compile",
    Status.COMPILE_ABORT: "compile",
    Status.TIMEOUT: "timeout",
    Status.RUNTIME: "runtime",
    Status.CORRECTNESS: "correctness",
    Status.NONDETERMINISTIC: "correctness",
    Status.IMPLAUSIBLE: "correctness",
}


def dumps(records: Sequence[Record]) -> str:
    """The file of what was found out about one problem. Times are in milliseconds, as Kernel Tuner's own; `judge` and
    `stage` among the measurements say whether anything was measured."""
    body = {"schema_version": VERSION, "results": [_result(record) for record in records]}
    return json.dumps(body, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _result(record: Record) -> dict[str, Any]:
    evaluation = record.evaluation
    measurements: list[dict[str, Any]] = [
        {"name": "stage", "value": evaluation.stage.value, "unit": ""},
        {"name": "judge", "value": evaluation.judge, "unit": ""},
    ]
    if evaluation.value_us is not None:
        measurements.insert(0, {"name": "time", "value": evaluation.value_us / 1000, "unit": "ms"})
    return {
        "timestamp": record.created_at,
        "configuration": record.config.to_dict(),
        "objectives": ["time"],
        "times": {
            "compilation_time": evaluation.seconds * 1000,
            "runtimes": [us / 1000 for us in evaluation.samples_us],
            "framework": 0,
            "search_algorithm": 0,
            "validation": 0,
        },
        "invalidity": _INVALIDITY[evaluation.status],
        "correctness": int(evaluation.ok),
        "measurements": measurements,
    }
