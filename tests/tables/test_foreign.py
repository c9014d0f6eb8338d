"""Other projects' files, in the shapes in which they publish them; and files that are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen import ops
from m3gen.errors import UserError
from m3gen.ops import Cache
from m3gen.spec import MINIMAX_M3, Status
from m3gen.store import Record
from m3gen.tables import foreign, t4
from m3gen.targets import default_device
from tests.store.samples import config, failed, measured

VLLM = {
    "1": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "num_warps": 4, "waves_per_eu": 0},
    "64": {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "num_warps": 8, "waves_per_eu": 2},
    "triton_version": "3.4.0",
}
CSV = (
    "cu_num,M,N,K,kernelId,splitK,us,kernelName,tflops,bw,errRatio\n"
    "80,1,1280,8192,23,0,5.4,a8w8_rowwise,3.9,1960.1,0.0\n"
    "304,16,1280,8192,24,1,6.25,a8w8_rowwise_2,53.7,1700,0.01\n"
)
AITER = {"M_LEQ_16": {"BLOCK_SIZE_N": 32, "NUM_KSPLIT": 4, "cache_modifier": None}, "any": {"BLOCK_SIZE_N": 256}}
TRITON = {
    "key": [4096, 128, "torch.bfloat16"],
    "configs_timings": [
        [{"kwargs": {"BLOCK_N": 64}, "num_warps": 4, "num_stages": 2, "maxnreg": None}, [0.012, 0.011, 0.013]],
        [{"kwargs": {"BLOCK_N": 32}, "num_warps": 8, "num_stages": 1, "maxnreg": None}, [float("inf")] * 3],
    ],
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_vllm_rows_by_tokens_and_the_shape_of_the_files_name(tmp_path: Path) -> None:
    name = "E=8,N=14336,device_name=AMD_Instinct_MI300X.json"
    rows = foreign.read(write(tmp_path, name, VLLM))
    assert [row.shape["tokens"] for row in rows] == [1, 64]
    assert rows[0].shape | {"tokens": 0} == {
        "tokens": 0,
        "E": 8,
        "N": 14336,
        "device_name": "AMD_Instinct_MI300X",
    }
    assert rows[1].config["BLOCK_SIZE_N"] == 128
    assert rows[0].us is None


def test_aiter_csv_tells_shape_config_and_time_apart(tmp_path: Path) -> None:
    first, second = foreign.read(write(tmp_path, "a8w8_tuned_gemm.csv", CSV))
    assert first.shape == {"cu_num": 80, "M": 1, "N": 1280, "K": 8192}
    assert first.config == {"kernelId": 23, "splitK": 0, "kernelName": "a8w8_rowwise"}
    assert (first.us, second.us, second.kernel) == (5.4, 6.25, "a8w8_rowwise_2")


def test_aiter_json_by_range_of_rows(tmp_path: Path) -> None:
    rows = foreign.read(write(tmp_path, "gfx942-GEMM-A16W16.json", AITER))
    assert [(row.format, row.kernel, row.shape["rows"]) for row in rows] == [
        ("aiter-json", "GEMM-A16W16", "M_LEQ_16"),
        ("aiter-json", "GEMM-A16W16", "any"),
    ]


def test_tritons_cache_with_its_milliseconds(tmp_path: Path) -> None:
    ran, failing = foreign.read(write(tmp_path, "attend.autotune.json", TRITON))
    assert (ran.kernel, ran.us, failing.us) == ("attend", 12.0, None)
    assert ran.config == {"BLOCK_N": 64, "num_warps": 4, "num_stages": 2, "maxnreg": None}
    assert ran.shape == {"0": 4096, "1": 128, "2": "torch.bfloat16"}


def test_t4_goes_out_and_comes_back(tmp_path: Path) -> None:
    records = [
        Record(config=config(1), evaluation=measured(12.5), created_at="2026-05-01T00:00:00+00:00"),
        Record(config=config(2), evaluation=failed(Status.COMPILE), created_at="2026-05-01T00:00:01+00:00"),
    ]
    text = t4.dumps(records)
    [row] = foreign.read(write(tmp_path, "op.t4.json", text))
    assert (row.us, row.config) == (12.5, config(1).to_dict())
    results = json.loads(text)["results"]
    assert [result["invalidity"] for result in results] == ["correct", "compile"]
    assert [result["correctness"] for result in results] == [1, 0]
    assert results[0]["times"]["runtimes"] == [0.0125] * 3
    assert all({"configuration", "times", "invalidity", "correctness"} <= set(result) for result in results)


def test_every_status_has_a_word_in_t4() -> None:
    for status in Status:
        evaluation = measured(1.0) if status is Status.OK else failed(status)
        t4.dumps([Record(config=config(), evaluation=evaluation, created_at="")])


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.json", "{", "not a table of a known kind"),
        ("a.json", "[]", "the whole: expected an object, not list"),
        ("a.json", {"a": 1}, "of no kind known here"),
        ("a.json", {"1": {"BLOCK": [1]}}, r"1\.BLOCK: expected a plain value, not list"),
        ("a.json", {"1": 3}, "1: expected an object, not int"),
        ("a.json", {"configs_timings": 3, "key": []}, "configs_timings: expected an array"),
        ("a.json", {"configs_timings": [[{}]], "key": []}, r"configs_timings\.0: expected a configuration"),
        ("a.json", {"configs_timings": [[{}, "x"]], "key": []}, r"configs_timings\.0\.1: expected a time"),
        ("a.json", {"schema_version": "1.0.0", "results": [3]}, r"results\.0: expected an object"),
        ("a.csv", "M,N,us\n1,2\n", "line 2 has not the 3 fields"),
        ("a.csv", "M,us\n1,fast\n", r"line 2\.us: expected a time"),
        ("a.csv", "", "has no rows"),
        ("a.json", "[" * 100_000, "is not"),
    ],
)
def test_what_is_no_table_is_refused_by_place(tmp_path: Path, name: str, content: Any, place: str) -> None:
    with pytest.raises(UserError, match=place) as caught:
        foreign.read(write(tmp_path, name, content))
    assert str(tmp_path / name) in str(caught.value)


NAMES = ["1", "key", "results", "schema_version", "configs_timings", "kwargs", "x"]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON, st.sampled_from([None, *foreign.KINDS]))
def test_any_json_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, value: Any, kind: str | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(value))
    try:
        foreign.read(path, kind)
    except UserError:
        return


def test_seeds_are_legal_and_take_over_what_is_shared(tmp_path: Path) -> None:
    device, op = default_device("gfx942"), ops.get("sparse_decode")
    problem = op.problem(device, MINIMAX_M3.shard(4), Cache("bf16"), 1)
    assert problem is not None
    rows = foreign.read(write(tmp_path, "attend.autotune.json", TRITON))
    space = op.space(problem, device)
    found = foreign.seeds(rows, op, problem, device)
    assert found
    assert all(config in space for config in found)
    assert {(config["tile_n"], config["num_warps"]) for config in found} <= {(64, 4), (32, 8)}
    strangers = foreign.read(write(tmp_path, "tuned.csv", CSV))
    assert all(config in space for config in foreign.seeds(strangers, op, problem, device))
