"""Files of points (README.md beside this says what stands in one) into `PointSet`s."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from m3gen import ops
from m3gen.errors import UserError
from m3gen.evaluate.points.point import TOLERANCE, Choice, Order, Point, PointSet, Split, Term
from m3gen.ops import Cache
from m3gen.space import Config
from m3gen.spec import KV_SCALES, MINIMAX_M3, dtype
from m3gen.targets import device

FORMAT = 1

_FILE = {"format", "source", "licence", "what", "measured", "points", "orders", "choices"}
_POINT = {
    "id",
    "group",
    "device",
    "source",
    "what",
    "published_us",
    "terms",
    "tolerance",
    "split",
    "context_only",
}
_TERM = {"sign", "op", "tp", "rows", "context", "kv", "kv_scale", "query_len", "config"}
_ORDER = {"what", "slower", "faster"}
_CHOICE = {"id", "device", "source", "what", "term", "parameter", "shipped", "alternatives"}

T = TypeVar("T")


def shipped() -> PointSet:
    """The points that come with m3gen."""
    folder = resources.files("m3gen.evaluate.points")
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".json")), key=lambda one: one.name)
    return _together([parse(one.read_text(encoding="utf-8"), one.name) for one in files])


def read(paths: Sequence[Path]) -> PointSet:
    """The points of these files. `UserError` naming the file, and in it the entry, that is not as it should be."""
    found = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"cannot read points from {path} ({reason}): name a file of points") from None
        found.append(parse(text, str(path)))
    return _together(found)


def parse(text: str, name: str) -> PointSet:
    """The points in the text of a file called `name`. `UserError` as `read`."""
    try:
        return _file(json.loads(text))
    except json.JSONDecodeError as error:
        raise UserError(f"{name} holds no JSON ({error}): expected a file of points") from None
    except _Fault as fault:
        raise UserError(f"{name}: {fault}") from None


class _Fault(Exception):
    """What is wrong and where: "points[2] (some id): rows: expected a positive integer, got 0"."""


def _together(sets: Sequence[PointSet]) -> PointSet:
    found = sum(sets, PointSet())
    _distinct([*(one.id for one in found.points), *(one.id for one in found.choices)])
    return found


def _distinct(ids: Sequence[str]) -> None:
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        raise UserError(f"the points have the id {twice[0]!r} twice: give each its own")


def _file(data: Any) -> PointSet:
    known = _fields(data, _FILE, required={"format", "source", "licence", "what"})
    if known["format"] != FORMAT or isinstance(known["format"], bool):
        raise _Fault(f"format {known['format']!r}: this m3gen reads format {FORMAT}")
    for name in ("source", "licence", "what"):
        _text(known, name)
    measured = known.get("measured", {})
    if not isinstance(measured, dict):
        raise _Fault(f"measured: expected an object of names and microseconds, got {measured!r}")
    for name in measured:
        _at(f"measured[{name!r}]", _positive, measured[name])
    usual = {"source": known["source"], "what": known["what"]}
    points = _each(known, "points", lambda one: _point({**usual, **one}, measured))
    by_id = {one.id: one for one in points}
    orders = _each(known, "orders", lambda one: _order(one, by_id))
    choices = _each(known, "choices", lambda one: _choice({"source": known["source"], **one}))
    return PointSet(points, orders, choices)


def _each(data: Mapping[str, Any], name: str, build: Callable[[Any], T]) -> tuple[T, ...]:
    entries = data.get(name, [])
    if not isinstance(entries, list):
        raise _Fault(f"{name}: expected a list, got {entries!r}")
    found = []
    for number, entry in enumerate(entries):
        title = f" ({entry['id']})" if isinstance(entry, dict) and isinstance(entry.get("id"), str) else ""
        if not isinstance(entry, dict):
            raise _Fault(f"{name}[{number}]: expected an object, got {entry!r}")
        found.append(_at(f"{name}[{number}]{title}", build, entry))
    return tuple(found)


def _at(where: str, build: Callable[[Any], T], value: Any) -> T:
    try:
        return build(value)
    except _Fault as fault:
        raise _Fault(f"{where}: {fault}") from None


def _point(entry: Mapping[str, Any], measured: Mapping[str, float]) -> Point:
    known = _fields(entry, _POINT, required=_POINT - {"tolerance", "split", "context_only"})
    terms = _each(known, "terms", _term)
    if not terms:
        raise _Fault("terms: expected at least one")
    where = _device(known)
    _on(where, terms)
    split = known.get("split", "held-out")
    if split not in tuple(Split):
        raise _Fault(f"split: expected {' or '.join(Split)}, got {split!r}")
    return Point(
        id=_text(known, "id"),
        group=_text(known, "group"),
        device=where,
        source=_text(known, "source"),
        what=_text(known, "what"),
        published_us=_at("published_us", lambda value: _published(value, measured), known["published_us"]),
        terms=terms,
        tolerance=_at("tolerance", _positive, known.get("tolerance", TOLERANCE)),
        split=Split(split),
        context_only=_text(known, "context_only") if "context_only" in known else "",
    )


def _published(value: Any, measured: Mapping[str, float]) -> tuple[float, ...]:
    """A time, several, or the difference of two that were measured."""
    if isinstance(value, list) and value:
        return tuple(_positive(one) for one in value)
    if not isinstance(value, dict):
        return (_positive(value),)
    known = _fields(value, {"of", "less"}, required={"of", "less"})
    for name in known.values():
        if not isinstance(name, str) or name not in measured:
            raise _Fault(f"{name!r} does not stand in measured")
    return (_positive(round(measured[known["of"]] - measured[known["less"]], 6)),)


def _term(entry: Mapping[str, Any]) -> Term:
    known = _fields(entry, _TERM, required={"op", "tp", "rows", "context"})
    sign = known.get("sign", "+")
    if sign not in ("+", "-"):
        raise _Fault(f"sign: expected '+' or '-', got {sign!r}")
    kv, kv_scale = known.get("kv", "bf16"), known.get("kv_scale", "none")
    if kv_scale not in KV_SCALES:
        raise _Fault(f"kv_scale: expected one of {', '.join(KV_SCALES)}, got {kv_scale!r}")
    changes = known.get("config", "field")
    if changes != "field" and not isinstance(changes, dict):
        raise _Fault(f'config: expected "field" or an object of changes to it, got {changes!r}')
    try:
        ops.get(_text(known, "op"))
        dtype(kv)
        MINIMAX_M3.shard(_natural(known, "tp"))
    except (UserError, ValueError, KeyError, TypeError) as error:
        raise _Fault(str(error.args[0])) from None
    rows, query_len = _natural(known, "rows"), _natural({"query_len": 1, **known}, "query_len")
    if rows % query_len:
        raise _Fault(f"rows: {rows} are no whole requests of {query_len} query rows")
    return Term(
        op=known["op"],
        tp=known["tp"],
        rows=rows,
        context=_natural(known, "context"),
        kv=kv,
        kv_scale=kv_scale,
        query_len=query_len,
        config=Config({} if changes == "field" else changes),
        sign=1 if sign == "+" else -1,
    )


def _on(device_name: str, terms: Sequence[Term]) -> None:
    """Refuse what the device lacks: the op of a term for that cache, or a parameter of its config."""
    where = device(device_name)
    for number, term in enumerate(terms):
        op, cache = ops.get(term.op), Cache(term.kv, term.kv_scale)
        problem = op.problem(where, MINIMAX_M3.shard(term.tp), cache, term.query_len)
        if problem is None:
            raise _Fault(f"terms[{number}]: {term.op} has no variant for {term.kv} with scale {term.kv_scale}")
        space = op.space(problem, where)
        try:
            space.canonical({**{p.name: p.default for p in space.parameters}, **term.config})
        except ValueError as error:
            raise _Fault(f"terms[{number}]: config: {error}") from None


def _order(entry: Mapping[str, Any], points: Mapping[str, Point]) -> Order:
    known = _fields(entry, _ORDER, required=_ORDER)
    for name in ("slower", "faster"):
        if _text(known, name) not in points:
            raise _Fault(f"{name}: {known[name]!r} is no point of this file")
    order = Order(what=_text(known, "what"), slower=points[known["slower"]], faster=points[known["faster"]])
    if order.ratio <= 1:
        raise _Fault(f"{known['slower']!r} was not published as slower than {known['faster']!r}")
    return order


def _choice(entry: Mapping[str, Any]) -> Choice:
    known = _fields(entry, _CHOICE, required=_CHOICE)
    term, parameter = _at("term", _term, known["term"]), _text(known, "parameter")
    alternatives = known["alternatives"]
    if not isinstance(alternatives, list) or len(alternatives) < 2 or known["shipped"] not in alternatives:
        raise _Fault(f"alternatives: expected a list of values with {known['shipped']!r} among them")
    where = _device(known)
    _on(where, [replace(term, config=Config({**term.config, parameter: value})) for value in alternatives])
    return Choice(
        id=_text(known, "id"),
        device=where,
        source=_text(known, "source"),
        what=_text(known, "what"),
        term=term,
        parameter=parameter,
        shipped=known["shipped"],
        alternatives=tuple(alternatives),
    )


def _fields(data: Any, names: set[str], required: set[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _Fault(f"expected an object, got {data!r}")
    if unknown := sorted(set(data) - names):
        raise _Fault(f"unknown field {unknown[0]!r}: there are {', '.join(sorted(names))}")
    if missing := sorted(required - set(data)):
        raise _Fault(f"{missing[0]} is missing")
    return data


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str) or not value.strip():
        raise _Fault(f"{name}: expected a text, got {value!r}")
    return value


def _natural(data: Mapping[str, Any], name: str) -> int:
    value = data[name]
    if type(value) is not int or value < 1:
        raise _Fault(f"{name}: expected a positive integer, got {value!r}")
    return value


def _positive(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise _Fault(f"expected a positive number, got {value!r}")
    return float(value)


def _device(data: Mapping[str, Any]) -> str:
    try:
        return device(_text(data, "device")).name
    except UserError as error:
        raise _Fault(f"device: {error}") from None
