"""Read a table: data in, data out. Nothing of it is run, and what is not of the format is refused by place.

Standard library and the floor of `spec` alone: the runtime reads tables through here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from m3gen.errors import UserError
from m3gen.spec import Problem
from m3gen.tables.schema import Mismatch, table_check
from m3gen.tables.table import (
    EXACT_FIELDS,
    KEY_FIELDS,
    LOAD_FIELDS,
    Fallback,
    LaunchCode,
    Point,
    PointStatus,
    Provenance,
    Table,
    Values,
    config_id,
)

__all__ = [
    "EXACT_FIELDS",
    "MAX_BYTES",
    "Fallback",
    "Point",
    "PointStatus",
    "Provenance",
    "Table",
    "Values",
    "load",
    "parse",
]

_OF_POINT = frozenset({"key", "launches", "open_ended", "status"})  # those that are not taken as they stand

MAX_BYTES = 16 << 20
"""20 000 points, the most a table may hold, take under 15 MB."""


def load(path: Path, *, known_sha: str | None = None) -> Table:
    """The table in a file. `UserError` naming the file, and the place in it when its content is at fault.

    Its folder and name must say what it holds: `<arch>/<op>.json`. A file whose SHA-256 is `known_sha`, which a
    package that is trusted as code gives, is taken to be of the schema: checking it is half the cost of loading.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read the table {path}: {error.strerror or error}") from None
    table = parse(data, str(path), known_sha=known_sha)
    if (table.arch, table.op) != (path.parent.name, path.stem):
        raise UserError(
            f"the table {path} is of {table.op} on {table.arch}: it belongs into {table.arch}/{table.op}.json"
        )
    return table


def parse(data: bytes, place: str, *, known_sha: str | None = None) -> Table:
    """The table in `data`; `place` names it in a `UserError`, `known_sha` is as in `load`."""
    try:
        if len(data) > MAX_BYTES:
            raise Mismatch(f"larger than {MAX_BYTES} bytes")
        if known_sha is not None and hashlib.sha256(data).hexdigest() == known_sha:
            with suppress(Mismatch, LookupError, TypeError, ValueError):  # then what is wrong is said below
                return _table(json.loads(data))
        content = _json(data)
        table_check()(content)
        _require_names(content)
        table = _table(content)
        _require_agreement(content, table)
        return table
    except Mismatch as error:
        raise UserError(f"the table {place} is not usable: {error}; export it again or remove it") from None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except Mismatch:
        raise
    except RecursionError:
        raise Mismatch("nested too deeply") from None
    except ValueError as error:  # JSON, UTF-8, or an integer of thousands of digits
        raise Mismatch(f"not JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Mismatch(f"field {twice[:40]!r} stands twice in one object")
    return made


def _constant(name: str) -> None:
    raise Mismatch(f"{name} is not a number")


def _require_names(content: Mapping[str, Any]) -> None:
    """That ids are those of what they name, and that whatever is named is there."""
    for name, config in content["configs"].items():
        if config_id(config) != name:
            raise _mismatch(f"its id should be {config_id(config)}", "configs", name)
    for name, entry in content.get("code", {}).items():
        if (expected := LaunchCode(**entry).id) != name:
            raise _mismatch(f"its id should be {expected}", "code", name)
    for index, name in enumerate(content["variant_fields"]):
        if name not in EXACT_FIELDS:
            raise _mismatch(f"{name} is not one of {', '.join(EXACT_FIELDS)}", "variant_fields", str(index))
    for index, point in enumerate(content["points"]):
        if missing := [name for name in KEY_FIELDS if name not in point["key"]]:  # Problem would fill it in
            raise _mismatch(f"{missing[0]} is missing", "points", str(index), "key")
        if point["config"] not in content["configs"]:
            raise _mismatch(f"no config {point['config']}", "points", str(index), "config")
        for place, name in enumerate(point.get("launches", ())):
            if name not in content.get("code", ()):
                raise _mismatch(f"no code {name}", "points", str(index), "launches", str(place))


def _require_agreement(content: Mapping[str, Any], table: Table) -> None:
    """That no two points are of one problem, and that what is said twice agrees."""
    seen: set[Problem] = set()
    for index, point in enumerate(table.points):
        if point.problem in seen:
            raise _mismatch("a second point for one problem", "points", str(index), "key")
        seen.add(point.problem)
        if not point.low_us <= point.us <= point.high_us:
            raise _mismatch("expected low_us <= us <= high_us", "points", str(index), "us")
    _require_fallbacks(content)
    for name in LOAD_FIELDS:
        if tuple(content["buckets"][name]) != table.buckets[name]:
            raise _mismatch(f"the points hold {list(table.buckets[name])}", "buckets", name)


def _require_fallbacks(content: Mapping[str, Any]) -> None:
    """A fallback stands on points: its kernel is one of theirs, so what answers has been through the gate."""
    fields = sorted(content["fallback"][0]["key"]) if content["fallback"] else []
    if unknown := [name for name in fields if name not in EXACT_FIELDS]:
        raise _mismatch(f"unknown field {unknown[0]}", "fallback", "0", "key")
    if missing := [name for name in content["variant_fields"] if name not in fields]:
        raise _mismatch(f"{missing[0]} is missing, a variant field", "fallback", "0", "key")
    held = {(point["config"], _values(point["key"], fields)) for point in content["points"]}
    for index, entry in enumerate(content["fallback"]):
        if sorted(entry["key"]) != fields:
            raise _mismatch("its fields differ from those of the first", "fallback", str(index), "key")
        if (entry["config"], _values(entry["key"], fields)) not in held:
            raise _mismatch("no point with this key has this config", "fallback", str(index))


def _table(content: Mapping[str, Any]) -> Table:
    provenance = content["provenance"]
    return Table(
        op=content["op"],
        arch=content["arch"],
        variant_fields=tuple(content["variant_fields"]),
        configs=content["configs"],
        points=tuple(_points(content)),
        fallback=tuple(Fallback(key=entry["key"], config=entry["config"]) for entry in content["fallback"]),
        provenance=Provenance(
            m3gen=provenance["m3gen"],
            compilers=tuple(provenance["compilers"]),
            judges=tuple(provenance["judges"]),
            templates=provenance["templates"],
            date=provenance["date"],
        ),
        code={name: LaunchCode(**entry) for name, entry in content.get("code", {}).items()},
    )


def _points(content: Mapping[str, Any]) -> Iterable[Point]:
    op, arch = content["op"], content["arch"]
    for index, entry in enumerate(content["points"]):
        try:
            problem = Problem.from_dict({"op": op, "arch": arch, **entry["key"]})
        except ValueError as error:
            raise _mismatch(str(error), "points", str(index), "key") from None
        rest = {name: value for name, value in entry.items() if name not in _OF_POINT}
        yield Point(
            problem=problem,
            status=PointStatus(entry["status"]),
            open_ended=tuple(entry["open_ended"]),
            launches=tuple(entry.get("launches", ())),
            **rest,
        )


def _values(key: Mapping[str, Any], fields: list[str]) -> str:
    return json.dumps([key[name] for name in fields])  # as text, for 1 and True are equal


def _mismatch(reason: str, *path: str) -> Mismatch:
    error = Mismatch(reason)
    error.path.extend(path)
    return error
