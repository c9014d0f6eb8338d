"""What became of rows under another compiler: the verdicts of `m3gen tables validate`, kept for the runtime.

Standard library and the floor of `spec` alone, as `tables.load`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from m3gen.errors import UserError
from m3gen.spec import Problem
from m3gen.tables.schema import Check, Mismatch, compile_schema

FORMAT = 1
MAX_BYTES = 16 << 20

_LABEL = {"type": "string", "pattern": r"^[A-Za-z0-9 _.,:;=+/@()'\[\]>-]{0,500}$"}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["format", "verdicts"],
    "properties": {
        "format": {"enum": [FORMAT]},
        "verdicts": {
            "type": "object",
            "maxProperties": 100000,
            "propertyNames": {"pattern": "^[0-9a-f]{24}$"},
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["kept", "why", "date"],
                "properties": {
                    "kept": {"enum": ["same", "changed", "fails"]},
                    "why": _LABEL,
                    "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
                },
            },
        },
    },
}


class Kept(StrEnum):
    """What a compiler makes of a row."""

    SAME = "same"  # the same resources, no spill
    CHANGED = "changed"  # it compiles, with other resources
    FAILS = "fails"  # it does not compile, does not fit, or spills


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` says what changed; `date` (YYYY-MM-DD, UTC) when it was found."""

    kept: Kept
    why: str
    date: str


def verdict_key(problem: Problem, config: str, source: str, compiler: str) -> str:
    """What a verdict holds for: a problem's variant and shape, a config's id, the text that runs, the compiler."""
    shape = {name: value for name, value in problem.to_dict().items() if name not in ("rows", "context")}
    text = json.dumps([shape, config, source, compiler], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def load_verdicts(path: Path) -> dict[str, Verdict]:
    """The verdicts of a file by key, none when there is no file. `UserError` when it is not of the format."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        if len(data) > MAX_BYTES:
            raise Mismatch(f"larger than {MAX_BYTES} bytes")
        try:
            content = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise Mismatch(f"not JSON: {error}") from None
        _check()(content)
    except Mismatch as error:
        raise UserError(f"{path} is not usable: {error}; run `m3gen tables validate` again or remove it") from None
    return {key: Verdict(Kept(one["kept"]), one["why"], one["date"]) for key, one in content["verdicts"].items()}


def dumps_verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """The file of these verdicts, one a line."""
    lines = [f"  {json.dumps(key)}: {json.dumps(asdict(verdicts[key]))}" for key in sorted(verdicts)]
    return f'{{\n "format": {FORMAT},\n "verdicts": {{\n' + ",\n".join(lines) + "\n }\n}\n"


@cache
def _check() -> Check:
    return compile_schema(_SCHEMA, {})
