"""What makes two rows the same row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from m3gen.spec import Problem

LOAD = ("rows", "context")  # fields of a problem that change how much work there is, not which code does it


def signature(problem: Problem) -> str:
    """SHA-256 of the problem without its load: problems of one signature run the same kernels."""
    return _sha({name: value for name, value in problem.to_dict().items() if name not in LOAD})


def arguments_sha(arguments: Mapping[str, Any], problems: Sequence[Problem]) -> str:
    """SHA-256 of what a session was asked: its arguments and its problems, in any order.

    `arguments` is plain JSON data. Leave out what does not change the work (jobs, paths).
    """
    return _sha({"arguments": dict(arguments), "problems": sorted({problem.sha for problem in problems})})


def _sha(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
