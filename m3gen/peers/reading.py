"""TOML files (docs/peers.md says what stands in one) into `Peer`s."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from m3gen.errors import UserError
from m3gen.ops.base import Work
from m3gen.peers.arithmetic import FUNCTIONS, Expression, Value, Wrong, check
from m3gen.peers.peer import LaunchText, Peer, Place, SampleText, Stub, TensorText
from m3gen.targets import ARCHITECTURES

FORMAT = 1
GIVEN = ("arch", "vendor", "none")
"""Names that a file need not define: the architecture's, "amd" or "nvidia", and no value."""

_FILE: tuple[str, ...] = (
    "format",
    "name",
    "what",
    "source",
    "archs",
    "path",
    "module",
    "stubs",
    "dimensions",
    "derived",
)
_FILE += ("tensors", "launches", "sample")
_TENSOR = ("dtype", "shape", "strides", "storage_bytes", "offset")
_LAUNCH = ("kernel", "grid", "arguments", "options", "work", "when")
_WORK = tuple(one.name for one in fields(Work) if one.name != "kernel")
_NEEDED_WORK = _WORK[: _WORK.index("load_waits")]

T = TypeVar("T")


def read(path: Path) -> Peer:
    """The peer in a file. `UserError` naming the file, and the place in it that is not as it should be."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot read {path} ({reason}): name a file that describes kernels") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Peer:
    """The peer in the text of a file called `name`. `UserError` as `read`."""
    try:
        return _peer(tomllib.loads(text), name)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{name} is no TOML ({error}): expected a description of kernels") from None
    except (_Fault, Wrong) as fault:
        raise UserError(f"{name}: {fault}") from None


class _Fault(Exception):
    """What is wrong and where: "launches[0] (attend): grid: expected one to three extents, got []"."""


def _peer(data: Mapping[str, Any], file: str) -> Peer:
    needed = ("format", "name", "what", "source", "dimensions", "tensors", "launches")
    known = _fields(data, _FILE, needed)
    if known["format"] != FORMAT or isinstance(known["format"], bool):
        raise _Fault(f"format {known['format']!r}: this m3gen reads format {FORMAT}")
    dimensions = {key: _at(f"dimensions.{key}", _scalar, one) for key, one in _table(known, "dimensions").items()}
    derived = {key: _at(f"derived.{key}", _expression, one) for key, one in _table(known, "derived").items()}
    tensors = {key: _at(f"tensors.{key}", _tensor, one) for key, one in _table(known, "tensors").items()}
    _distinct(dimensions, derived, tensors)
    launches = known["launches"]
    if not isinstance(launches, list) or not launches:
        raise _Fault("launches: expected at least one [[launches]]")
    return Peer(
        file=file,
        name=_text(known, "name"),
        what=_text(known, "what"),
        source=_text(known, "source"),
        archs=_at("archs", _archs, known.get("archs", [])),
        place=_place(known),
        dimensions=dimensions,
        derived=derived,
        tensors=tensors,
        launches=tuple(
            _at(f"launches[{number}]{_title(one)}", _launch, one) for number, one in enumerate(launches)
        ),
        sample=_at("sample", lambda one: _sample(one, tensors, {*dimensions, *derived}), known["sample"])
        if "sample" in known
        else None,
    )


def _place(known: Mapping[str, Any]) -> Place:
    if ("path" in known) == ("module" in known):
        raise _Fault("expected either path or module, to say where the kernels are")
    stubs: dict[str, Stub | None] = {}
    for name, one in _table(known, "stubs").items():
        if one == "package":
            stubs[name] = None
        elif isinstance(one, dict) and all(isinstance(part, str) or _is_texts(part) for part in one.values()):
            stubs[name] = one
        else:
            raise _Fault(f'stubs."{name}": expected "package" or a table of names and texts, got {one!r}')
    where = {key: _text(known, key) for key in ("path", "module") if key in known}
    return Place(**where, stubs=stubs)


def _is_texts(data: Any) -> bool:
    return isinstance(data, dict) and all(isinstance(text, str) for text in data.values())


def _tensor(data: Any) -> TensorText:
    known = _fields(data, _TENSOR, ("dtype", "shape"))
    return TensorText(
        dtype=_text(known, "dtype"),
        shape=_at("shape", _expressions, known["shape"]),
        strides=_at("strides", _expressions, known["strides"]) if "strides" in known else None,
        storage_bytes=_at("storage_bytes", _expression, known["storage_bytes"])
        if "storage_bytes" in known
        else None,
        offset=_at("offset", _expression, known.get("offset", 0)),
    )


def _launch(data: Any) -> LaunchText:
    known = _fields(data, _LAUNCH, ("kernel", "grid", "arguments", "work"))
    grid = _at("grid", _expressions, known["grid"])
    if not 1 <= len(grid) <= 3:
        raise _Fault(f"grid: expected one to three extents, got {len(grid)}")
    work = _fields(_table(known, "work"), _WORK, _NEEDED_WORK, "work: ")
    return LaunchText(
        kernel=_text(known, "kernel"),
        grid=grid,
        arguments=_named(known, "arguments"),
        options=_named(known, "options"),
        work={name: _at(f"work.{name}", _expression, one) for name, one in work.items()},
        when=_at("when", _expression, known.get("when", True)),
    )


def _sample(data: Any, tensors: Mapping[str, TensorText], names: set[str]) -> SampleText:
    known = _fields(data, ("loads", "fill"), ("loads",))
    loads = known["loads"]
    if not isinstance(loads, list) or not 1 <= len(loads) <= 2 or not all(isinstance(one, dict) for one in loads):
        raise _Fault("loads: expected one or two tables of what changes")
    for number, load in enumerate(loads):
        if unknown := sorted(set(load) - names):
            raise _Fault(f"loads[{number}]: {unknown[0]} is no dimension of this file")
    fills = _named(known, "fill", skip=("block table",))
    if unknown := sorted(set(fills) - set(tensors)):
        raise _Fault(f"fill: {unknown[0]} is no tensor of this file")
    return SampleText(
        loads=tuple(
            {name: _at(f"loads[{number}].{name}", _expression, one) for name, one in load.items()}
            for number, load in enumerate(loads)
        ),
        fills=fills,
    )


def _distinct(*tables: Mapping[str, Any]) -> None:
    taken: set[str] = {*GIVEN, *FUNCTIONS}
    for table in tables:
        for name in table:
            if not name.isidentifier():
                raise _Fault(f"{name!r} is no name: use letters, digits and _")
            if name in taken:
                raise _Fault(f"{name} means something else already: rename it")
            taken.add(name)


def _named(data: Mapping[str, Any], name: str, skip: tuple[str, ...] = ()) -> dict[str, Expression]:
    return {
        key: one if one in skip else _at(f"{name}.{key}", _expression, one)
        for key, one in _table(data, name).items()
    }


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise _Fault(f"{name}: expected a table, got {value!r}")
    return value


def _fields(data: Any, names: tuple[str, ...], needed: tuple[str, ...], where: str = "") -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _Fault(f"{where}expected a table, got {data!r}")
    if unknown := sorted(set(data) - set(names)):
        raise _Fault(f"{where}unknown field {unknown[0]!r}: there are {', '.join(names)}")
    if missing := [name for name in needed if name not in data]:
        raise _Fault(f"{where}{missing[0]} is missing")
    return data


def _at(where: str, build: Callable[[Any], T], value: Any) -> T:
    try:
        return build(value)
    except (_Fault, Wrong) as fault:
        raise _Fault(f"{where}: {fault}") from None


def _title(entry: Any) -> str:
    kernel = entry.get("kernel") if isinstance(entry, dict) else None
    return f" ({kernel})" if isinstance(kernel, str) else ""


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str) or not value.strip():
        raise _Fault(f"{name}: expected a text, got {value!r}")
    return value


def _archs(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one in ARCHITECTURES for one in value):
        raise _Fault(f"expected a list of {', '.join(ARCHITECTURES)}, got {value!r}")
    return tuple(value)


def _scalar(value: Any) -> Value:
    if type(value) not in (int, float, bool, str):
        raise _Fault(f"expected a number or a text, got {value!r}")
    return value  # type: ignore[no-any-return]


def _expression(value: Any) -> Expression:
    _scalar(value)
    check(value)
    return value  # type: ignore[no-any-return]


def _expressions(value: Any) -> tuple[Expression, ...]:
    if not isinstance(value, list):
        raise _Fault(f"expected a list, got {value!r}")
    return tuple(_expression(one) for one in value)
