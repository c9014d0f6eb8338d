"""The part of JSON Schema that `schema.json` uses, compiled to checks.

Stricter than the standard in one point: an integer is written without a fraction, as equal values must have
equal text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

Check = Callable[[Any], None]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NOTES = frozenset({"$schema", "$id", "$defs", "title", "description"})


class Mismatch(ValueError):
    """What is wrong and where: `path` grows from the inside out as the error travels."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{'.'.join(self.path) or 'the whole'}: {self.reason}"


@cache
def table_check() -> Check:
    """The check of a whole table by `schema.json`; it raises `Mismatch`."""
    schema = json.loads(files("m3gen.tables").joinpath("schema.json").read_text(encoding="utf-8"))
    return compile_schema(schema, schema["$defs"])


def compile_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    """The check of one schema node. `KeyError` for a keyword that would go unchecked."""
    if "$ref" in schema:
        return compile_schema(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    keywords = [keyword for keyword in schema if keyword not in _NOTES]
    keywords.sort(key=lambda keyword: keyword != "type")  # the others rely on it
    checks = [_KEYWORDS[keyword](schema[keyword], schema, definitions) for keyword in keywords]
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> None:
        for part in checks:
            part(value)

    return check


def _type(names: str | list[str], *_: Any) -> Check:
    wanted = [names] if isinstance(names, str) else names
    types = {t for name in wanted for t in _TYPES[name]}

    def check(value: Any) -> None:
        if type(value) not in types:  # exact: True is no integer
            raise Mismatch(f"expected {' or '.join(wanted)}, not {_shown(value)}")

    return check


def _enum(values: list[Any], *_: Any) -> Check:
    def check(value: Any) -> None:
        if not any(type(value) is type(known) and value == known for known in values):
            raise Mismatch(f"expected {' or '.join(map(str, values))}, not {_shown(value)}")

    return check


def _pattern(pattern: str, *_: Any) -> Check:
    match = re.compile(pattern).fullmatch  # patterns are anchored; a bare $ would let a newline through

    def check(value: Any) -> None:
        if type(value) is str and not match(value):
            raise Mismatch(f"{_shown(value)} does not match {pattern}")

    return check


def _bound(holds: Callable[[Any, Any], bool], words: str) -> Callable[..., Check]:
    def keyword(limit: float, *_: Any) -> Check:
        def check(value: Any) -> None:
            if type(value) in (int, float) and not holds(value, limit):
                raise Mismatch(f"expected {words} {limit}, not {_shown(value)}")

        return check

    return keyword


def _size(
    kind: type[list[Any]] | type[dict[str, Any]], holds: Callable[[int, int], bool], words: str
) -> Callable[..., Check]:
    def keyword(limit: int, *_: Any) -> Check:
        def check(value: Any) -> None:
            if isinstance(value, kind) and not holds(len(value), limit):
                raise Mismatch(f"expected {words} {limit} entries, not {len(value)}")

        return check

    return keyword


def _items(schema: Any, _: Any, definitions: Mapping[str, Any]) -> Check:
    item_check = compile_schema(schema, definitions)

    def check(value: Any) -> None:
        for index, item in enumerate(value):
            _at(str(index), item_check, item)

    return check


def _properties(schemas: Mapping[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    checks = {name: compile_schema(part, definitions) for name, part in schemas.items()}

    def check(value: Any) -> None:
        for name, part in checks.items():
            if name in value:
                _at(name, part, value[name])

    return check


def _required(names: list[str], *_: Any) -> Check:
    def check(value: Any) -> None:
        if missing := [name for name in names if name not in value]:
            raise Mismatch(f"{missing[0]} is missing")

    return check


def _property_names(schema: Any, _: Any, definitions: Mapping[str, Any]) -> Check:
    name_check = compile_schema(schema, definitions)

    def check(value: Any) -> None:
        for name in value:
            name_check(name)

    return check


def _additional(rest: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    known = frozenset(schema.get("properties", ()))
    rest_check = compile_schema(rest, definitions) if rest is not False else None

    def check(value: Any) -> None:
        for name in value:
            if name in known:
                continue
            if rest_check is None:
                raise Mismatch(f"unknown field {_shown(name)}")
            _at(name, rest_check, value[name])

    return check


def _at(name: str, check: Check, value: Any) -> None:
    try:
        check(value)
    except Mismatch as error:
        error.path.insert(0, name if len(name) <= 40 else f"{name[:37]}...")
        raise


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return type(value).__name__
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_KEYWORDS: dict[str, Callable[..., Check]] = {
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "minimum": _bound(lambda value, limit: bool(value >= limit), "at least"),
    "maximum": _bound(lambda value, limit: bool(value <= limit), "at most"),
    "exclusiveMinimum": _bound(lambda value, limit: bool(value > limit), "more than"),
    "minItems": _size(list, lambda size, limit: size >= limit, "at least"),
    "maxItems": _size(list, lambda size, limit: size <= limit, "at most"),
    "minProperties": _size(dict, lambda size, limit: size >= limit, "at least"),
    "maxProperties": _size(dict, lambda size, limit: size <= limit, "at most"),
    "items": _items,
    "properties": _properties,
    "required": _required,
    "propertyNames": _property_names,
    "additionalProperties": _additional,
}
