from __future__ import annotations

import json
from dataclasses import fields
from importlib.resources import files
from typing import Any

import pytest

from m3gen import ops
from m3gen.ops.coverage import QUICK
from m3gen.tables.schema import Mismatch, compile_schema
from m3gen.tables.table import LaunchCode, Point, Provenance
from m3gen.targets import ARCHITECTURES, default_device

INF, NAN = float("inf"), float("nan")
SCHEMA = json.loads(files("m3gen.tables").joinpath("schema.json").read_text())


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [0, -1], [True, 1.0, "1", None]),
        ({"type": "number"}, [0, 1.5], [True, "1"]),
        (
            {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 9},
            [None, 0.1],
            [0, -1, 10**400, INF, NAN],
        ),
        ({"type": "boolean"}, [True], [1, "true"]),
        ({"enum": [1]}, [1], [True, 1.0, 2]),
        ({"type": "string", "pattern": "^[a-z]{1,3}$"}, ["abc"], ["", "abcd", "A", "ab\n"]),
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
        (
            {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
            [[1]],
            [[], [1, 2, 3], ["a"]],
        ),
        ({"type": "object", "minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "null"}}},
            [{"a": None}],
            [{}, {"a": 1}],
        ),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}], [{"b": 1}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"b": 1}], [{"b": "1"}]),
        ({"type": "object", "propertyNames": {"pattern": "^[a-z]$"}}, [{"a": 1}], [{"ab": 1}]),
        (
            {"type": ["boolean", "integer", "string"], "maximum": 3, "pattern": "^[a-z]$"},
            [True, 1, "a"],
            [7, "A", None, 1.0],
        ),
        ({"items": {"$ref": "#/$defs/small"}}, [[1, 3]], [[4]]),
        ({"required": ["a"], "type": "object"}, [{"a": 1}], [3, [], None]),
    ],
)
def test_keywords(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    check = compile_schema(schema, {"small": {"type": "integer", "maximum": 3}})
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(Mismatch):
            check(value)


def test_a_keyword_that_would_go_unchecked_is_refused() -> None:
    with pytest.raises(KeyError, match="uniqueItems"):
        compile_schema({"type": "array", "uniqueItems": True}, {})


def test_the_place_is_named_from_the_outside_in() -> None:
    schema = {"properties": {"a": {"items": {"additionalProperties": {"type": "integer"}}}}}
    with pytest.raises(Mismatch, match=r"^a\.1\.b: expected integer, not 'x'$"):
        compile_schema(schema, {})({"a": [{"b": 1}, {"b": "x"}]})


def test_the_schema_holds_the_fields_of_the_values() -> None:
    point = SCHEMA["$defs"]["point"]
    assert {f.name for f in fields(Point)} - {"problem"} | {"key"} == set(point["properties"])
    assert set(point["required"]) == set(point["properties"]) - {"launches"}
    code = SCHEMA["$defs"]["code"]
    assert {f.name for f in fields(LaunchCode)} == set(code["properties"]) == set(code["required"])
    assert {f.name for f in fields(Provenance)} == set(SCHEMA["properties"]["provenance"]["properties"])


def test_every_string_number_and_list_of_the_schema_is_bounded() -> None:
    def walk(node: Any) -> None:
        if not isinstance(node, dict):
            return
        kinds = node.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "string" in kinds:
            assert node["pattern"].startswith("^")
            assert node["pattern"].endswith("$")
        if "integer" in kinds or "number" in kinds:
            assert "maximum" in node
        if "array" in kinds:
            assert "maxItems" in node
        if "object" in kinds:
            assert node.get("additionalProperties") is False or "maxProperties" in node
        for name, child in node.items():
            if name in ("properties", "$defs"):
                for part in child.values():
                    walk(part)
            elif isinstance(child, dict):
                walk(child)

    walk(SCHEMA)


@pytest.mark.parametrize("name", ops.names())
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_table_can_hold_every_value_of_every_space(name: str, arch: str) -> None:
    """Once a search ended in an export that its own schema refused: of "max-ilp" for the hyphen."""
    device, op = default_device(arch), ops.get(name)
    schema = json.loads(files("m3gen.tables").joinpath("schema.json").read_text())
    check = compile_schema(schema["$defs"]["values"], schema["$defs"])
    for problem in QUICK.problems([op], device):
        for parameter in op.space(problem, device).parameters:
            for value in parameter.values:
                check({parameter.name: value})
