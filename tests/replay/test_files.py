"""Reading recorded spaces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from m3gen.errors import UserError
from m3gen.replay.files import read
from m3gen.replay.plan import shipped
from m3gen.space import Choice, Ordinal

ROWS = [
    {"config": [16, 0], "median_ms": 2.0, "status": "ok"},
    {"config": [32, 1], "median_ms": 1.0, "status": "ok"},
    {"config": [32, 0], "median_ms": None, "status": "RuntimeFailedConfig"},
]
REDUCED: dict[str, Any] = {
    "kernel": "k",
    "device": "d",
    "parameters": [{"name": "block", "values": [32, 16]}, {"name": "pad", "values": [0, 1]}],
    "rows": ROWS,
}
CACHE: dict[str, Any] = {
    "device_name": "d",
    "kernel_name": "k",
    "objective": "time",
    "tune_params_keys": ["block", "pad"],
    "tune_params": {"block": [32, 16], "pad": [0, 1]},
    "cache": {
        "16,0": {"block": 16, "pad": 0, "time": 2.2, "times": [2.0, 2.0, 2.6]},
        "32,1": {"block": 32, "pad": 1, "time": 1.0},
        "32,0": {"block": 32, "pad": 0, "time": "RuntimeFailedConfig"},
        "16,1": {"block": 16, "pad": 1, "time": "InvalidConfig"},
    },
}


def t4(block: int, pad: int, invalidity: str, runtimes: list[float]) -> dict[str, Any]:
    return {
        "configuration": {"block": block, "pad": pad},
        "times": {"runtimes": runtimes},
        "invalidity": invalidity,
        "correctness": 1,
        "measurements": [{"name": "time", "value": 1.0, "unit": "ms"}],
        "objectives": ["time"],
    }


T4: dict[str, Any] = {
    "schema_version": "1.0.0",
    "results": [
        t4(16, 0, "correct", [2.0, 2.0, 2.6]),
        t4(32, 1, "correct", []),
        t4(32, 0, "runtime", []),
        t4(16, 1, "constraints", []),
    ],
}


def written(folder: Path, content: Any, name: str = "space.json") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def changed(content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**content, **changes}


@pytest.mark.parametrize("content", [REDUCED, CACHE, T4], ids=["reduced", "cache", "T4"])
def test_three_formats_one_space(tmp_path: Path, content: dict[str, Any]):
    found = read(written(tmp_path, content))
    assert [config.to_dict() for config in found.space] == [
        {"block": 16, "pad": 0},
        {"block": 32, "pad": 0},
        {"block": 32, "pad": 1},
    ]
    assert found.milliseconds == (2.0, None, 1.0)
    assert list(found.failures) == [1]
    assert found.optimum == 1.0


def test_t4_results_are_called_as_their_folder_and_file(tmp_path: Path):
    path = written(tmp_path / "convolution_milo", T4, "A100_T4.json")
    assert read(path).name == "convolution-A100"


def test_gzipped_or_not(tmp_path: Path):
    path = tmp_path / "space.json.gz"
    path.write_bytes(gzip.compress(json.dumps(REDUCED).encode()))
    assert read(path).milliseconds == (2.0, None, 1.0)


def test_numbers_have_an_order_texts_and_flags_have_none(tmp_path: Path):
    values = changed(
        REDUCED,
        parameters=[{"name": "b", "values": [4, 1.0]}, {"name": "t", "values": ["x", "y"]}],
        rows=[{"config": [1, "y"], "median_ms": 1.0}],
    )
    number, text = read(written(tmp_path, values)).space.parameters
    assert isinstance(number, Ordinal)
    assert number.values == (1, 4)
    assert isinstance(text, Choice)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ([], "expected an object with rows, cache or results"),
        (changed(REDUCED, rows=[{"config": [16, 0, 1], "median_ms": 1.0}]), "3 values for 2 parameters"),
        (changed(REDUCED, rows=[{"config": [17, 0], "median_ms": 1.0}]), "block=17: expected one of 16, 32"),
        (changed(REDUCED, rows=[*ROWS, ROWS[0]]), r"config \[16, 0\] is recorded twice"),
        (changed(REDUCED, rows=[{"config": [16, 0], "median_ms": -1}]), "the time -1: expected milliseconds"),
        (changed(REDUCED, rows=[{"config": [16, 0], "median_ms": "fast"}, ROWS[2]]), "no config has a time"),
        (changed(REDUCED, rows=[ROWS[2]]), "no config has a time"),
        (changed(REDUCED, rows=[]), "no config has a time"),
        (changed(REDUCED, rows={}), "rows is dict: expected a list"),
        (changed(REDUCED, kernel=7), "kernel is int: expected text"),
        (
            changed(
                REDUCED,
                parameters=[{"name": "block size", "values": [1]}],
                rows=[{"config": [1], "median_ms": 1.0}],
            ),
            "is no parameter name",
        ),
        (
            changed(REDUCED, parameters=[{"name": "a", "values": [1.5]}]),
            "expected an integer, true, false or text",
        ),
        (changed(REDUCED, parameters=REDUCED["parameters"] * 2), "'block' is declared twice"),
        (changed(CACHE, cache={"16": {"block": 16, "time": 1.0}}), "a config lacks 'pad'"),
        (changed(CACHE, tune_params=None), "tune_params is missing: expected an object"),
        (changed(CACHE, cache={"16,0": [1]}), "expected an object"),
        (
            changed(T4, results=[*T4["results"], {**T4["results"][0], "configuration": {"block": 64, "x": 1}}]),
            "a config lacks 'pad'",
        ),
        (
            changed(
                T4,
                results=[
                    T4["results"][0],
                    {**T4["results"][1], "configuration": {"block": 64, "pad": 0, "x": 1}},
                ],
            ),
            "the unknown parameter 'x': expected block, pad",
        ),
    ],
)
def test_what_is_no_recorded_space_is_refused_in_one_line(tmp_path: Path, content: Any, complaint: str):
    with pytest.raises(UserError, match=complaint) as refused:
        read(written(tmp_path, content))
    assert "\n" not in str(refused.value)
    assert "space.json" in str(refused.value)


def test_a_truncated_file_is_refused(tmp_path: Path):
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(REDUCED).encode())[:-20])
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps(REDUCED)[:-20])
    for path, complaint in ((packed, "cannot read"), (plain, "is it whole"), (tmp_path / "none", "cannot read")):
        with pytest.raises(UserError, match=complaint):
            read(path)


def test_the_shipped_spaces_are_whole():
    found = [read(path) for path in shipped()]
    assert len(found) == 7
    assert {len(one.space) for one in found if one.kernel == "convolution"} == {4362}
    assert {len(one.space) for one in found if one.kernel == "dedispersion"} == {11130}
