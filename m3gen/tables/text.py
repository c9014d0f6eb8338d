"""`Table` to text: sorted keys, one config or point a line, so that a diff shows which shapes changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from m3gen.tables.table import FORMAT, KEY_FIELDS, Point, Table


def dumps(table: Table) -> str:
    """The file of a table; equal tables have equal text."""
    sections: dict[str, str] = {
        "format": _line(FORMAT),
        "op": _line(table.op),
        "arch": _line(table.arch),
        "buckets": _line(table.buckets),
        "variant_fields": _line(table.variant_fields),
        "configs": _lines_of_object({name: dict(config) for name, config in table.configs.items()}),
        "fallback": _lines_of_array([{"config": f.config, "key": dict(f.key)} for f in table.fallback]),
        "points": _lines_of_array([_point(point) for point in table.points]),
        "provenance": _lines_of_object(
            {
                "m3gen": table.provenance.m3gen,
                "compilers": table.provenance.compilers,
                "judges": table.provenance.judges,
                "templates": dict(table.provenance.templates),
                "date": table.provenance.date,
            }
        ),
    }
    if table.code:
        sections["code"] = _lines_of_object({name: asdict(one) for name, one in table.code.items()})
    body = ",\n".join(f" {_line(name)}: {sections[name]}" for name in sorted(sections))
    return f"{{\n{body}\n}}\n"


def sha(table: Table) -> str:
    """SHA-256 of the table's file, 64 hex digits."""
    return hashlib.sha256(dumps(table).encode()).hexdigest()


def _point(point: Point) -> dict[str, Any]:
    kept = {"launches": point.launches} if point.launches else {}
    return {
        **kept,
        "key": {name: getattr(point.problem, name) for name in KEY_FIELDS},
        "config": point.config,
        "us": point.us,
        "low_us": point.low_us,
        "high_us": point.high_us,
        "baseline_us": point.baseline_us,
        "status": point.status.value,
        "judge": point.judge,
        "gate": point.gate,
        "limit": point.limit,
        "registers": point.registers,
        "compiler": point.compiler,
        "source_sha": point.source_sha,
        "evidence": point.evidence,
        "open_ended": point.open_ended,
    }


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _lines_of_object(values: Mapping[str, Any]) -> str:
    return "{" + ",".join(f"\n  {_line(name)}: {_line(values[name])}" for name in sorted(values)) + "\n }"


def _lines_of_array(values: Sequence[Any]) -> str:
    return "[" + ",".join(f"\n  {_line(value)}" for value in values) + "\n ]"
