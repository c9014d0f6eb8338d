"""Tables while they are written, on a disk that cannot be, and with bytes that nobody would write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen import runtime
from m3gen.codegen.generate import generate
from m3gen.errors import UserError
from m3gen.runtime import Rung
from m3gen.tables.export import export, merged
from m3gen.tables.load import load, parse
from m3gen.tables.text import dumps
from tests.runtime.conftest import make
from tests.tables.winners import config, finding, fp8, problem

GOOD = dumps(merged(None, [finding(problem()), finding(problem(rows=16)), finding(fp8())])).encode()

LOAD = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("error")
from m3gen import runtime
from m3gen.spec import Problem
home, until = Path(sys.argv[1]), Path(sys.argv[2])
of = Problem(**eval(sys.argv[3]))
times = set()
while not until.exists():
    times.add(runtime.load("gfx942", tables=home / "tuning_db").sparse_decode.select(of).point.us)
print(sorted(times))
"""


def test_runtimes_load_while_one_exports(tmp_path: Path) -> None:
    home, until = make(tmp_path / "home", finding(problem(), 1.0)), tmp_path / "until"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", LOAD, str(home), str(until), repr(problem().to_dict())]
    loading = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for us in range(2, 25):
        for path in export([finding(problem(), float(us))], home / "tuning_db"):
            generate(load(path), home / "generated")
    until.touch()
    for process in loading:
        out, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        assert set(eval(out)) <= {float(us) for us in range(1, 25)}


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"\xef\xbb\xbf" + GOOD, "the whole: not JSON"),
        (GOOD.replace(b'"points"', b'"po\\u0000ints"'), "unknown field 'po"),
        (GOOD + b"\0", "the whole: not JSON"),
        (GOOD.replace(b'"rows": 16', b'"rows": 1e999'), r"points\.1\.key\.rows: expected"),
        (GOOD.replace(b'"rows": 16', b'"rows": ' + b"9" * 4000), r"points\.1\.key\.rows: expected at most"),
        (GOOD.replace(b'"us": 10.0', b'"us": -Infinity', 1), "-Infinity is not a number"),
        (GOOD.replace(b'"us": 10.0', b'"us": 10.0, "us": 1.0', 1), "field 'us' stands twice"),
    ],
    ids=["byte order mark", "nul in a name", "nul at the end", "infinite", "huge", "not finite", "twice"],
)
def test_hostile_bytes_are_refused_by_place(data: bytes, place: str) -> None:
    assert data != GOOD
    with pytest.raises(UserError, match=place):
        parse(data, "some.json")


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_good_table_with_other_bytes_is_refused_or_another_legal_table(data: st.DataObject) -> None:
    changed = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(changed) - 1))
        end = start + data.draw(st.integers(0, 12))
        piece = data.draw(
            st.one_of(st.binary(max_size=8), st.sampled_from([b"0", b"-1", b'"', b"}", b"null", b"1e9"]))
        )
        changed[start:end] = piece
    try:
        read = parse(bytes(changed), "some.json")
    except UserError:
        return
    assert parse(dumps(read).encode(), "again") == read


@pytest.mark.parametrize("harm", ["cut", "oversized", "hostile", "nul"])
def test_where_a_table_is_no_use_the_next_rung_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.setenv("M3GEN_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("M3GEN_SITE", str(tmp_path / "site"))
    monkeypatch.delenv("M3GEN_TABLES", raising=False)
    make(tmp_path / "user", finding(problem(), 1.0))
    make(tmp_path / "site", finding(problem(), 2.0, chosen=config(problem(), num_warps=2)))
    path = tmp_path / "user" / "tuning_db" / "gfx942" / "sparse_decode.json"
    good = path.read_bytes()
    path.write_bytes(
        {
            "cut": good[: len(good) // 2],
            "oversized": good + b" " * (17 << 20),
            "hostile": good.replace(b'"format": 1', b'"format": 1, "run": "import os"'),
            "nul": good.replace(b"gfx942", b"gfx\0"),
        }[harm]
    )
    with pytest.warns(RuntimeWarning, match="is not usable"):
        kernels = runtime.load("gfx942")
    selection = kernels.sparse_decode.select(problem())
    assert selection.rung is Rung.SITE
    assert str(path) in selection.reason


def test_a_config_outside_the_space_has_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a table names is run only as a module that was generated through the op's space."""
    home = make(tmp_path / "home", finding(problem()))
    path = home / "tuning_db" / "gfx942" / "sparse_decode.json"
    from m3gen.tables.table import config_id

    table = load(path)
    [(name, values)] = table.configs.items()
    strange = {**values, "num_warps": 3}
    text = path.read_text().replace(name, config_id(strange)).replace('"num_warps": 4', '"num_warps": 3')
    path.write_text(text)
    assert load(path).configs == {config_id(strange): strange}
    with pytest.raises(runtime.NoKernel, match="no module sparse_decode_"):
        runtime.load("gfx942", tables=home / "tuning_db").sparse_decode.select(problem())
    with pytest.raises(UserError, match=r"is not of the op's space.*num_warps"):
        generate(load(path), tmp_path / "again")
