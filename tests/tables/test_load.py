"""Tables from anywhere: refused by place, nothing of them run."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.errors import UserError
from m3gen.tables.export import merged
from m3gen.tables.load import MAX_BYTES, load, parse
from m3gen.tables.text import dumps
from tests.tables.winners import finding, fp8, problem

GOOD: dict[str, Any] = json.loads(
    dumps(merged(None, [finding(problem()), finding(problem(rows=16)), finding(fp8())]))
)


def refused(data: bytes) -> str:
    with pytest.raises(UserError) as caught:
        parse(data, "some.json")
    assert "some.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def put(*path: Any, value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(table: Any) -> None:
        for name in path[:-1]:
            table = table[name]
        table[path[-1]] = value

    return change


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "unknown field": (put("extra", value=1), "unknown field 'extra'"),
    "unknown point field": (put("points", 1, "pickle", value="x"), r"points\.1: unknown field 'pickle'"),
    "missing field": (lambda t: t.pop("points"), "points is missing"),
    "newer format": (put("format", value=2), "format: expected 1"),
    "format by another type": (put("format", value=True), "format"),
    "code as a value": (
        put("points", 0, "key", "q_dtype", value="__import__('os')"),
        r"points\.0\.key\.q_dtype",
    ),
    "upper case name": (put("op", value="Sparse"), "op"),
    "path as an op": (put("op", value="../../etc/passwd"), "op"),
    "time of zero": (put("points", 1, "us", value=0), r"points\.1\.us"),
    "time as text": (put("points", 1, "us", value="3"), r"points\.1\.us"),
    "time outside its interval": (put("points", 1, "us", value=1000.0), r"points\.1\.us: expected low_us"),
    "config that is not there": (put("points", 1, "config", value="0" * 12), r"points\.1\.config: no config"),
    "true for one": (put("points", 1, "key", "rows", value=True), r"points\.1\.key: rows=True"),
    "rows that are no bucket": (put("points", 1, "key", "rows", value=17), r"points\.1\.key: rows=17"),
    "unknown dtype": (put("points", 1, "key", "kv_dtype", value="fp7"), r"points\.1\.key: kv_dtype"),
    "unknown key field": (
        put("points", 1, "key", "colour", value=1),
        r"points\.1\.key: unknown problem fields",
    ),
    "missing key field": (lambda t: t["points"][1]["key"].pop("topk"), r"points\.1\.key"),
    "two points of one problem": (lambda t: t["points"].append(t["points"][0]), r"points\.3\.key: a second"),
    "measured by nobody": (put("points", 1, "status", value="guessed"), r"points\.1\.status"),
    "not gated": (put("points", 1, "gate", value=""), r"points\.1\.gate"),
    "an unknown gate": (put("points", 1, "gate", value="nothing"), r"points\.1\.gate"),
    "quote in a label": (put("points", 1, "judge", value='x"""\nimport os'), r"points\.1\.judge"),
    "short sha": (put("points", 1, "source_sha", value="abc"), r"points\.1\.source_sha"),
    "variant of no field": (put("variant_fields", 0, value="colour"), r"variant_fields\.0"),
    "variant by load": (put("variant_fields", 0, value="rows"), r"variant_fields\.0"),
    "edges that are not the points'": (
        put("buckets", "rows", value=[1, 512]),
        r"buckets\.rows: the points hold",
    ),
    "fallback of no point": (put("fallback", 0, "key", "topk", value=3), r"fallback\.0: no point"),
    "fallback for any variant": (
        lambda t: [f["key"].pop("topk") for f in t["fallback"]],
        r"fallback\.0\.key",
    ),
    "fallback by load": (lambda t: [f["key"].update(rows=1) for f in t["fallback"]], r"fallback\.0\.key"),
    "uneven fallbacks": (lambda t: t["fallback"][1]["key"].update(kv_heads=1), r"fallback\.1\.key"),
    "huge integer": (put("points", 1, "registers", value=10**400), r"points\.1\.registers"),
    "huge time": (put("points", 1, "us", value=10**400), r"points\.1\.us"),
    "date as code": (put("provenance", "date", value="2026-01-01\n"), r"provenance\.date"),
    "too many configs": (
        lambda t: t["configs"].update({f"{i:012x}": {} for i in range(5000)}),
        "configs: expected at most 4096",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_of_the_format_is_refused_by_place(fault: str) -> None:
    change, place = FAULTS[fault]
    table = copy.deepcopy(GOOD)
    change(table)
    message = refused(json.dumps(table).encode())
    assert re.search(place, message), message


def test_a_config_is_what_its_id_says() -> None:
    table = copy.deepcopy(GOOD)
    next(iter(table["configs"].values()))["num_warps"] = 8
    assert "its id should be" in refused(json.dumps(table).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 5000,
        b'{"format": NaN}',
        b'{"format": 1, "format": 1}',
        b" " * (MAX_BYTES + 1),
    ],
    ids=[
        "empty",
        "cut",
        "not utf-8",
        "list",
        "null",
        "deep list",
        "deep object",
        "digits",
        "nan",
        "twice",
        "big",
    ],
)
def test_bytes_that_are_no_table(data: bytes) -> None:
    refused(data)


@settings(deadline=None)
@given(st.integers(0, len(json.dumps(GOOD)) - 1))
def test_a_truncated_table_is_refused(cut: int) -> None:
    refused(json.dumps(GOOD).encode()[:cut])


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@settings(deadline=None, max_examples=200)
@given(st.data(), JSON)
def test_anything_in_place_of_anything_is_refused_or_another_legal_table(data: st.DataObject, value: Any) -> None:
    table = copy.deepcopy(GOOD)
    node: Any = table
    while isinstance(node, dict | list) and node:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(list(keys)))
        if data.draw(st.booleans()):
            node[key] = value
            break
        node = node[key]
    try:
        read = parse(json.dumps(table).encode(), "some.json")
    except UserError:
        return
    assert parse(dumps(read).encode(), "again") == read


def test_the_file_must_lie_where_its_content_says(tmp_path: Path) -> None:
    path = tmp_path / "gfx950" / "sparse_decode.json"
    path.parent.mkdir()
    path.write_text(json.dumps(GOOD))
    with pytest.raises(UserError, match=r"belongs into gfx942/sparse_decode\.json"):
        load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the table"):
        load(tmp_path / "gfx942" / "sparse_decode.json")


def test_a_read_only_file_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "gfx942" / "sparse_decode.json"
    path.parent.mkdir()
    path.write_text(json.dumps(GOOD))
    path.chmod(0o444)
    assert load(path).op == "sparse_decode"


def test_a_file_that_is_known_by_its_sum_is_the_same_table() -> None:
    data = dumps(parse(json.dumps(GOOD).encode(), "some.json")).encode()
    known = hashlib.sha256(data).hexdigest()
    assert parse(data, "some.json", known_sha=known) == parse(data, "some.json")


@pytest.mark.parametrize("known", [True, False])
def test_a_sum_vouches_for_that_file_alone(known: bool) -> None:
    """And a file that is no table is refused by place, whoever lists it."""
    table = copy.deepcopy(GOOD)
    table["points"][1]["us"] = 1000.0
    del table["configs"]
    data = json.dumps(table).encode()
    with pytest.raises(UserError, match="configs is missing"):
        parse(data, "some.json", known_sha=hashlib.sha256(data).hexdigest() if known else "0" * 64)
