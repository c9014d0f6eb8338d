"""`load` and the ladder, from the outside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from m3gen import ops, runtime
from m3gen.codegen import build
from m3gen.errors import UserError
from m3gen.runtime import NoKernel, Place, Rung, backend, sources
from m3gen.runtime.modules import Modules
from m3gen.runtime.selection import Launcher
from m3gen.spec import Problem
from m3gen.targets import UnknownTarget
from tests.runtime.conftest import FOUND, make
from tests.tables.winners import config, finding, fp8, problem


@pytest.fixture
def release(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tables of `home` as those that ship."""

    def shipped(package: str) -> Path:
        assert package == "m3gen.tuning_db"
        return home / "tuning_db"

    monkeypatch.setattr(sources, "files", shipped)
    modules = Modules.in_folder(home / "generated" / "gfx942")
    monkeypatch.setattr(Modules, "in_package", classmethod(lambda cls, name: modules))
    return home


def loaded(home: Path) -> runtime.OpKernels:
    return runtime.load("gfx942", tables=home / "tuning_db").sparse_decode


# Loading


def test_ops_by_attribute_and_by_name(home: Path) -> None:
    kernels = runtime.load("gfx942", tables=home / "tuning_db")
    assert list(kernels) == sorted(ops.names())
    assert kernels["sparse_decode"] is kernels.sparse_decode
    assert not hasattr(kernels, "prefill")
    with pytest.raises(KeyError, match="no tables of prefill on gfx942: there are dense_decode, "):
        kernels["prefill"]


def test_the_architecture_in_any_spelling(home: Path) -> None:
    assert runtime.load("gfx942:sramecc+:xnack-", tables=home / "tuning_db").arch == "gfx942"


def test_an_unknown_architecture() -> None:
    with pytest.raises(UnknownTarget):
        runtime.load("gfx9000")


def test_no_table_at_all_says_how_to_get_one(release: Path) -> None:
    with pytest.raises(UserError, match=r"no table for sm_100 in .*m3gen tune --arch sm_100"):
        runtime.load("sm_100")


def test_a_named_folder_without_a_table_of_the_architecture(tmp_path: Path) -> None:
    (tmp_path / "tuning_db").mkdir()
    with pytest.raises(UserError, match="no table for sm_100 in"):
        runtime.load("sm_100", tables=tmp_path / "tuning_db")


@pytest.mark.parametrize("name", ["M3GEN_TABLES", "M3GEN_GENERATED"])
def test_a_named_folder_that_is_not_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/no/such/folder")
    with pytest.raises(UserError, match=f"{name}=/no/such/folder is not a folder"):
        runtime.load("gfx942")


def test_a_named_table_that_is_damaged_is_refused(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "copy")
    (tmp_path / "copy" / "tuning_db" / "gfx942" / "sparse_decode.json").write_text("{}")
    with pytest.raises(UserError, match="is not usable"):
        loaded(tmp_path / "copy")


def test_loading_writes_nothing_but_bytecode(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    for path in files:
        path.chmod(0o444)
    loaded(tmp_path / "copy").bind(problem(), 512)
    after = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert before == after


# The row that serves a load


@pytest.mark.parametrize(("rows", "row"), [(1, 1), (2, 16), (16, 16), (32, 64), (64, 64)])
def test_the_smallest_bucket_at_or_above(home: Path, rows: int, row: int) -> None:
    selection = loaded(home).select(problem(rows=rows))
    assert selection.rung is Rung.OVERRIDE
    assert selection.point is not None
    assert selection.point.problem.rows == row
    assert selection.config == next(f.winner.config for f in FOUND if f.winner.problem.rows == row).to_dict()


def test_above_the_last_bucket_the_heuristic_answers(home: Path) -> None:
    selection = loaded(home).select(problem(rows=128))
    assert (selection.rung, selection.point) == (Rung.HEURISTIC, None)
    assert "128 rows are over its last bucket 64" in selection.reason


def test_a_context_past_where_the_work_grows_is_served_by_the_last_bucket(home: Path) -> None:
    assert loaded(home).select(problem(context=1 << 20)).rung is Rung.OVERRIDE


def test_a_longer_context_than_was_tuned_is_not(tmp_path: Path) -> None:
    lists = {"topk": 64}  # the work grows up to 2048 tokens
    kernels = loaded(make(tmp_path, finding(problem(**lists))))
    assert kernels.select(problem(**lists)).rung is Rung.OVERRIDE
    selection = kernels.select(problem(**lists, context=2048))
    assert selection.rung is Rung.HEURISTIC
    assert "a context of 2048 is over its last bucket 1024" in selection.reason


@pytest.mark.parametrize(
    "change",
    [{"compute_units": 80}, {"group_size": 8}, {"kv_heads": 2}],
    ids=lambda change: next(iter(change)),
)
def test_another_shape_of_the_same_kernel_gets_the_fallback_and_the_reason(
    home: Path, change: dict[str, int]
) -> None:
    selection = loaded(home).select(problem(**change))
    ((name, value),) = change.items()
    assert selection.rung is Rung.HEURISTIC
    assert f"its nearest row has {name} {getattr(problem(), name)}, not {value}" in selection.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kv_dtype": "e4m3fn", "kv_scale": "scalar"}, "kv_dtype e4m3fnuz, not e4m3fn"),
        ({"q_dtype": "fp16"}, "q_dtype bf16, not fp16"),
        ({"kv_dtype": "e4m3fnuz", "kv_scale": "per_token_head"}, "kv_scale scalar, not per_token_head"),
        ({"topk": 16}, "topk 2, not 16"),
        ({"query_len": 4, "rows": 4}, "query_len 1, not 4"),
    ],
)
def test_another_kernel_is_refused_by_the_field_that_differs(
    home: Path, change: dict[str, int | str], reason: str
) -> None:
    with pytest.raises(NoKernel, match=f"nearest row has {reason}.*m3gen tune --arch gfx942 --op sparse_decode"):
        loaded(home).select(problem(**change))


def test_a_problem_of_another_architecture(home: Path) -> None:
    other = Problem(op="sparse_decode", arch="gfx950", compute_units=256)
    with pytest.raises(NoKernel, match="the problem is sparse_decode on gfx950"):
        loaded(home).select(other)


# Precedence


def test_override_then_user_then_release(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = runtime.load("gfx942").sparse_decode
    assert kernels.select(problem()).rung is Rung.RELEASE
    users = make(tmp_path / "user", finding(problem(rows=1), 0.5))
    monkeypatch.setenv("M3GEN_TABLES", str(users / "tuning_db"))
    kernels = runtime.load("gfx942").sparse_decode
    assert kernels.select(problem()).rung is Rung.USER
    selection = kernels.select(problem(rows=16))
    assert selection.rung is Rung.RELEASE  # a row of the release goes before the fallback of the user
    assert "user table: 16 rows are over its last bucket 1" in selection.reason
    override = make(tmp_path / "override", finding(problem(rows=1), 0.1))
    kernels = runtime.load("gfx942", tables=override / "tuning_db").sparse_decode
    assert kernels.select(problem()).rung is Rung.OVERRIDE
    assert kernels.select(problem(rows=64)).rung is Rung.RELEASE


def test_the_users_data_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M3GEN_HOME", str(home))
    assert runtime.load("gfx942").sparse_decode.select(problem()).rung is Rung.USER


def test_modules_from_a_folder_of_their_own(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(home / "tuning_db", tmp_path / "elsewhere" / "tables")
    monkeypatch.setenv("M3GEN_TABLES", str(tmp_path / "elsewhere" / "tables"))
    monkeypatch.setenv("M3GEN_GENERATED", str(home / "generated"))
    assert runtime.load("gfx942").sparse_decode.select(problem()).rung is Rung.USER


def test_a_damaged_table_of_the_user_warns_and_the_release_answers(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tuning_db" / "gfx942" / "sparse_decode.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 1')
    monkeypatch.setenv("M3GEN_TABLES", str(tmp_path / "tuning_db"))
    with pytest.warns(RuntimeWarning, match="is not usable: the whole: not JSON"):
        kernels = runtime.load("gfx942")
    selection = kernels.sparse_decode.select(problem())
    assert selection.rung is Rung.RELEASE
    assert str(path) in selection.reason
    assert str(path) in kernels.faults[0]


@pytest.mark.parametrize("harm", ["no folder", "no module", "no index", "broken module", "another launcher"])
def test_without_its_module_the_next_rung_answers(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    users = make(tmp_path / "user", finding(problem(), 0.5, chosen=config(problem(), num_warps=2)))
    folder = users / "generated" / "gfx942"
    (module,) = folder.glob("sparse_decode_*.py")
    if harm == "no folder":
        shutil.rmtree(folder)
    elif harm == "no module":
        module.unlink()
    elif harm == "no index":
        (folder / "__init__.py").write_text("MODULES = {}")
    elif harm == "broken module":
        module.write_text("def (")
    else:
        module.write_text("def dense_decode(): ...\n")
    monkeypatch.setenv("M3GEN_TABLES", str(users / "tuning_db"))
    selection = runtime.load("gfx942").sparse_decode.select(problem())
    assert selection.rung is Rung.RELEASE
    assert "user table: " in selection.reason
    assert str(folder) in selection.reason


def test_without_any_module_the_refusal_says_so(tmp_path: Path) -> None:
    kernels = loaded(make(tmp_path, finding(problem()), modules=False))
    with pytest.raises(NoKernel, match=r"override table: no modules in .*generated/gfx942"):
        kernels.select(problem())


# Binding


def test_bind_chooses_for_every_number_of_rows(home: Path) -> None:
    kernels = loaded(home)
    dispatch = kernels.bind(problem(rows=512, context=1 << 20), 600)
    assert dispatch.max_rows == 600
    for rows in (1, 2, 16, 17, 64, 65, 600):
        bucket = next((edge for edge in (1, 16, 64) if rows <= edge), None)
        point = dispatch.selection(rows).point
        assert (point.problem.rows if point else None) == bucket
    assert list(dispatch.selections()) == [1, 16, 64, 600]
    with pytest.raises(IndexError):
        dispatch(601)


def test_bind_and_select_agree(home: Path) -> None:
    kernels = loaded(home)
    dispatch = kernels.bind(fp8(), 16)
    for rows in (1, 4, 16):
        assert dispatch.selection(rows).point == kernels.select(fp8(rows=rows)).point


def test_bind_refuses_before_anything_runs(home: Path) -> None:
    with pytest.raises(NoKernel, match="topk 2, not 4"):
        loaded(home).bind(problem(topk=4), 16)
    with pytest.raises(ValueError, match="max_rows=0"):
        loaded(home).bind(problem(), 0)


def test_a_call_of_a_dispatch_reaches_the_launcher_of_its_rows(home: Path) -> None:
    dispatch = loaded(home).bind(problem(), 64)
    called = []
    dispatch._launchers = [lambda _rows=rows, **keywords: called.append((_rows, keywords)) for rows in range(65)]
    dispatch(17, q=1)
    assert called == [(17, {"q": 1})]


# Where launches run


def test_without_the_gpu_launches_are_interpreted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "live_architecture", lambda: "gfx950")
    kernels = runtime.load("gfx942", tables=home / "tuning_db")
    assert kernels.place is Place.INTERPRETER
    assert hasattr(kernels.sparse_decode.select(problem()).launcher, "__wrapped__")
    monkeypatch.setattr(backend, "live_architecture", lambda: "gfx942")
    kernels = runtime.load("gfx942", tables=home / "tuning_db")
    assert kernels.place is Place.GPU
    assert not hasattr(kernels.sparse_decode.select(problem()).launcher, "__wrapped__")


@pytest.mark.parametrize("live", ["gfx942", None])
def test_launches_that_the_caller_takes(home: Path, live: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is here, and those of a kernel that is built on the spot too."""
    monkeypatch.setattr(backend, "live_architecture", lambda: live)
    called = []

    def adapt(own: Launcher) -> Launcher:
        return lambda **given: called.append((own.__name__, given))

    kernels = runtime.load("gfx942", tables=home / "tuning_db", build=build, adapt=adapt)
    assert kernels.place is Place.CALLER
    for of in (problem(), problem(topk=4)):
        kernels.sparse_decode.select(of).launcher(q=1)
    assert called == [("sparse_decode", {"q": 1})] * 2


class _Properties:
    gcnArchName = "gfx942:sramecc+:xnack-"


@pytest.mark.parametrize(
    ("hip", "capability", "arch"), [("6.4", None, "gfx942"), (None, (9, 0), "sm_90"), (None, (7, 5), None)]
)
def test_the_live_architecture(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, capability: tuple[int, int] | None, arch: str | None
) -> None:
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: _Properties())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert backend.live_architecture() == arch


@pytest.mark.parametrize("xdg", [None, "", "/data"])
def test_the_data_folder_is_where_the_command_line_writes(
    monkeypatch: pytest.MonkeyPatch, xdg: str | None
) -> None:
    from m3gen import paths

    monkeypatch.setenv("HOME", "/home/someone")
    if xdg is not None:
        monkeypatch.setenv("XDG_DATA_HOME", xdg)
    assert sources.data_dir() == paths.data_dir() == Path(os.environ["M3GEN_HOME"])
    monkeypatch.delenv("M3GEN_HOME")
    assert sources.data_dir() == paths.data_dir()
