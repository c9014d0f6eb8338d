"""Reads recorded spaces: reduced files, caches of Kernel Tuner, and results in the T4 format, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import math
import statistics
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from m3gen.errors import UserError
from m3gen.replay.recorded import Point, Recorded, recorded
from m3gen.space import Value

T = TypeVar("T")

MAX_BYTES = 1 << 30  # of text after unpacking; the largest files of the benchmark hub have a tenth of it
# What a config is called that a kernel's own rules refuse: it is not part of the space.
_REFUSED = ("InvalidConfig", "constraints")


class _Bad(Exception):
    """What is wrong with the content, for `read` to say of which file."""


def read(path: Path) -> Recorded:
    """The recorded space in a file; `UserError` in one line when it cannot be read or does not hold one."""
    content = _content(path)
    kinds: dict[str, Callable[[Path, Mapping[str, Any]], Recorded]] = {
        "rows": _reduced,
        "cache": _cache,
        "results": _t4,
    }
    for key, reader in kinds.items():
        if isinstance(content, dict) and key in content:
            try:
                return reader(path, content)
            except (_Bad, ValueError) as error:
                raise UserError(f"{path} is no recorded space: {error}; fetch the file anew") from None
    raise UserError(
        f"{path} is no recorded space: expected an object with rows, cache or results, "
        "as benchmarks/spaces and the benchmark hub of Kernel Tuner have them"
    )


def _content(path: Path) -> Any:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                raw = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UserError(f"cannot read {path}: {reason}; name a recorded space, .json or .json.gz") from None
    if len(raw) > MAX_BYTES:
        raise UserError(f"{path} unpacks to more than {MAX_BYTES >> 20} MiB: no recorded space is that large")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UserError(f"{path} is not JSON ({what}): is it whole? Fetch the file anew") from None


def _reduced(path: Path, content: Mapping[str, Any]) -> Recorded:
    """`parameters`: names with values; `rows`: `config`, `median_ms`, `status`."""
    declared: dict[str, list[Value]] = {}
    for parameter in _list(content, "parameters"):
        name = _text(parameter, "name")
        if name in declared:
            raise _Bad(f"parameter {name!r} is declared twice")
        declared[name] = [_value(value, name) for value in _list(parameter, "values")]
    names = list(declared)
    points = _Points(names)
    for row in _list(content, "rows"):
        config = _list(row, "config")
        if len(config) != len(names):
            raise _Bad(f"a config has {len(config)} values for {len(names)} parameters")
        status = row.get("status", "ok")
        points.add(config, row.get("median_ms") if status == "ok" else str(status))
    return recorded(_text(content, "kernel"), _text(content, "device"), declared, points.found)


def _cache(path: Path, content: Mapping[str, Any]) -> Recorded:
    """A cache file of Kernel Tuner: `tune_params` with their values, `cache`: one object per config."""
    declared = {
        str(name): [_value(value, name) for value in _list(_object(content, "tune_params"), name)]
        for name in _object(content, "tune_params")
    }
    objective = content.get("objective", "time")
    names = list(declared)
    points = _Points(names)
    for entry in _object(content, "cache").values():
        config = _config(entry, names)
        outcome = entry.get("__error__", entry.get(objective))
        times = entry.get("times")
        points.add(config, statistics.median(times) if _numbers(times) and _number(outcome) else outcome)
    return recorded(_text(content, "kernel_name"), _text(content, "device_name"), declared, points.found)


def _t4(path: Path, content: Mapping[str, Any]) -> Recorded:
    """Results in the T4 format, which names neither the kernel nor the device: folder and file do.

    https://github.com/odgaard/TuningSchema
    """
    results = _list(content, "results")
    if not results:
        raise _Bad("it has no results")
    names = list(_object(results[0], "configuration"))
    points = _Points(names)
    for result in results:
        config = _config(_object(result, "configuration"), names, exactly=True)
        invalidity = result.get("invalidity")
        points.add(config, _t4_time(result) if invalidity == "correct" else str(invalidity))
    values = {
        name: list(dict.fromkeys(column))
        for name, column in zip(names, zip(*points.found, strict=True), strict=True)
    }
    device = path.name.partition(".")[0].removesuffix("_T4").removesuffix("-results")
    return recorded(path.resolve().parent.name.removesuffix("_milo"), device, values, points.found)


def _t4_time(result: Mapping[str, Any]) -> Any:
    runtimes = _object(result, "times").get("runtimes")
    if _numbers(runtimes):
        return statistics.median(runtimes)
    (objective, *_) = result.get("objectives") or ["time"]
    return next((m.get("value") for m in result.get("measurements", ()) if m.get("name") == objective), None)


class _Points:
    """Collects configs with their outcomes, each of the right types, none twice."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.found: dict[Point, float | str] = {}

    def add(self, config: Sequence[Any], outcome: Any) -> None:
        if isinstance(outcome, str) and outcome in _REFUSED:
            return
        point = tuple(_value(value, name) for name, value in zip(self._names, config, strict=True))
        if point in self.found:
            raise _Bad(f"config {list(point)} is recorded twice")
        if not _number(outcome) and not isinstance(outcome, str):
            raise _Bad(f"config {list(point)} has the time {outcome!r}: expected milliseconds over zero")
        self.found[point] = outcome if isinstance(outcome, str) else float(outcome)


def _config(values: Any, names: Sequence[str], *, exactly: bool = False) -> list[Any]:
    if not isinstance(values, dict):
        raise _Bad(f"a config is {values!r}: expected an object")
    if missing := [name for name in names if name not in values]:
        raise _Bad(f"a config lacks {missing[0]!r}")
    if exactly and (unknown := [name for name in values if name not in names]):
        raise _Bad(f"a config has the unknown parameter {unknown[0]!r}: expected {', '.join(names)}")
    return [values[name] for name in names]


def _value(value: Any, name: object) -> Value:
    """A value of a parameter: a number with nothing behind the point counts as an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int | str):
        raise _Bad(f"{name} has the value {value!r}: expected an integer, true, false or text")
    return value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _numbers(values: Any) -> TypeGuard[list[float]]:
    return isinstance(values, list) and bool(values) and all(map(_number, values))


def _list(holder: Any, key: object) -> list[Any]:
    return _typed(holder, key, list, "a list")


def _object(holder: Any, key: object) -> dict[str, Any]:
    return _typed(holder, key, dict, "an object")


def _text(holder: Any, key: object) -> str:
    return _typed(holder, key, str, "text")


def _typed(holder: Any, key: object, kind: type[T], word: str) -> T:
    found = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(found, kind):
        raise _Bad(f"{key} is {type(found).__name__ if found is not None else 'missing'}: expected {word}")
    return found
