"""`m3gen tune` with a fake session: flow, exit statuses, the object, and what is refused before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from m3gen.cli import work
from m3gen.cli.tune import DEFAULT_BUDGET
from m3gen.search.budget import Budget
from m3gen.targets import device
from tests.cli import fakes
from tests.cli.conftest import Run

TUNE = ("tune", "--arch", "gfx942")


def test_it_ends_with_0_when_every_problem_is_won(run: Run, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    _, export = fakes.install(monkeypatch, fakes.all_won)
    ran = run(*TUNE)
    assert ran.status == 0
    assert export.rows is not None
    assert len(export.rows) == 8
    for part in (
        "sparse_decode on gfx942 (MI300X)",
        "predicted by predict-amd-1 (±35 %); gate: interpreter",
        str(home / "tuning_db/gfx942/sparse_decode.json"),
        str(home / "generated/gfx942/sparse_decode_0.py"),
        str(home / "m3gen.db"),
    ):
        assert part in ran.out
    assert "No verified winner" not in ran.out


def test_it_ends_with_1_and_names_the_problem_that_is_not_won(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.install(monkeypatch, fakes.one_lost)
    ran = run(*TUNE, "--kv", "bf16")
    assert ran.status == 1
    assert "No verified winner yet" in ran.out
    assert "sparse_decode TP 4 bf16 rows 1 " in ran.out


def test_without_winners_nothing_is_exported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _, export = fakes.install(monkeypatch, fakes.none_won)
    ran = run(*TUNE)
    assert ran.status == 1
    assert export.rows is None


def test_progress_goes_to_standard_error_as_lines_where_there_is_no_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.install(monkeypatch, fakes.all_won)
    ran = run(*TUNE)
    assert [line.split(",")[0] for line in ran.err.splitlines()] == ["searching", "done"]
    assert "searching" not in ran.out


def test_the_options_reach_the_session(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session, _ = fakes.install(monkeypatch, fakes.all_won)
    url = f"sqlite:///{tmp_path / 'own.db'}"
    options = ("--device", "mi308x", "--op", "sparse_decode", "--tp", "8", "--kv", "fp8", "--rows", "3")
    more = ("--kv-scale", "per_token_head", "--context", "1000", "--query-len", "2", "--budget", "7,90s")
    run(*TUNE, *options, *more, "--jobs", "3", "--sampler", "random", "--seed", "5", "--store", url)
    [problem] = session.problems
    assert (problem.compute_units, problem.group_size, problem.rows) == (80, 8, 4)
    assert (problem.kv_dtype, problem.kv_scale) == ("e4m3fnuz", "per_token_head")
    assert (problem.context, problem.query_len) == (1024, 2)
    found = session.options
    assert found["device"] is device("MI308X")
    assert found["budget"] == Budget(7, 90.0)
    assert (found["executor"].slots, found["sampler"], found["seed"]) == (3, "random", 5)
    assert found["cache_dir"] == tmp_path / "cache"
    assert str(found["store"].location) == str(tmp_path / "own.db")


def test_the_defaults(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fakes.install(monkeypatch, fakes.all_won)
    run(*TUNE)
    assert session.options["budget"] == Budget.parse(DEFAULT_BUDGET)
    assert (session.options["sampler"], session.options["seed"]) == ("hybrid", 0)
    assert session.options["executor"].slots >= 1


def test_out_takes_tables_and_modules(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fakes.install(monkeypatch, fakes.all_won)
    found = run(*TUNE, "--out", tmp_path / "out", "--json").object
    assert found["tables"] == [str(tmp_path / "out/tuning_db/gfx942/sparse_decode.json")]
    assert found["modules"] == [str(tmp_path / "out/generated/gfx942/sparse_decode_0.py")]


def test_no_export_writes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    _, export = fakes.install(monkeypatch, fakes.all_won)
    found = run(*TUNE, "--no-export", "--json").object
    assert (found["tables"], found["modules"], export.rows) == ([], [], None)
    assert [path.name for path in home.iterdir() if path.is_dir()] == []


class TestJson:
    def test_one_object_and_nothing_else(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        fakes.install(monkeypatch, fakes.one_lost)
        ran = run(*TUNE, "--kv", "bf16", "--json")
        found = ran.object
        assert ran.status == 1
        assert list(found)[:5] == ["m3gen", "command", "arch", "device", "ended"]
        assert (found["command"], found["arch"], found["device"]) == ("tune", "gfx942", "MI300X")
        assert [winner["problem"]["rows"] for winner in found["winners"]] == [16, 64, 256]
        assert [row["problem"]["rows"] for row in found["without_winner"]] == [1]
        assert found["failures"] == {"compile_abort": 1, "timeout": 2}
        assert found["compiled"] == 21
        assert found["cached"] == 9

    def test_on_ctrl_c_too(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        fakes.install(monkeypatch, fakes.interrupted_once)
        ran = run(*TUNE, "--json")
        assert (ran.status, ran.object["ended"], len(ran.object["winners"])) == (130, "interrupted", 1)

    def test_none_for_bad_input(self, run: Run) -> None:
        assert "'gfx9000'" in run("tune", "--arch", "gfx9000", "--json").line


class TestCtrlC:
    def test_the_first_stops_the_session_and_prints_what_is_known(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session, export = fakes.install(monkeypatch, fakes.interrupted_once)
        ran = run(*TUNE)
        assert (ran.status, session.stopped) == (130, 1)
        assert "sparse_decode on gfx942" in ran.out
        assert "interrupted" in ran.out
        assert "Ctrl-C again ends at once" in ran.err
        assert export.rows is None

    def test_the_second_ends_at_once(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        session, _ = fakes.install(monkeypatch, fakes.interrupted_twice)
        ran = run(*TUNE)
        assert (ran.status, ran.out, session.stopped) == (130, "", 1)
        assert ran.err.splitlines()[-1] == "m3gen: interrupted; nothing that was stored is lost"


BAD_INPUT: list[tuple[tuple[Any, ...], str, str]] = [
    (("--arch", "gfx94"), "'gfx94'", "gfx942"),
    (("--arch", "gfx942", "--device", "H300"), "'H300'", "nearest"),
    (("--arch", "gfx942", "--device", "H200"), "H200", "--arch sm_90"),
    (("--arch", "gfx942", "--op", "dense"), "'dense'", "known ops"),
    (("--arch", "gfx942", "--tp", "3"), "--tp 3", "1, 2, 4, 8, 16"),
    (("--arch", "gfx942", "--kv", "e4m3fn"), "'e4m3fn'", "e4m3fnuz"),
    (("--arch", "gfx942", "--rows", "1,many"), "'1,many'", "--rows 1,16"),
    (("--arch", "gfx942", "--budget", "soon"), "'soon'", "90s"),
    (("--arch", "gfx942", "--budget", "0"), "'0'", "each over zero"),
    (("--arch", "gfx942", "--executor", "rey"), "'rey'", "local or ray"),
    (("--arch", "gfx942", "--address", "head:6379"), "head:6379", "--executor ray"),
    (("--arch", "gfx942", "--store", "postgresql+psycopg://nobody@127.0.0.1:1/none"), "127.0.0.1", "psycopg"),
    (("--arch", "gfx942", "--no-export", "--out", "x"), "--no-export", "one of the two"),
    (("--arch", "gfx942", "--store", "nowhere"), "'nowhere'", "sqlite:///"),
    (("--arch", "gfx942", "--store", "mysql://host/db"), "mysql", "sqlite:///"),
]


@pytest.mark.parametrize(("arguments", "names", "remedy"), BAD_INPUT, ids=lambda value: "")
def test_bad_input_is_one_line_before_any_work(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], names: str, remedy: str
) -> None:
    session, _ = fakes.install(monkeypatch, fakes.all_won)
    line = run("tune", *arguments).line
    assert names in line
    assert remedy in line
    assert session.options == {}


def test_an_unknown_sampler_is_refused_by_the_session_itself(run: Run) -> None:
    line = run(*TUNE, "--sampler", "tpee").line
    assert "'tpee'" in line
    assert "tpe" in line


class TestUnwritable:
    """A file where a folder should be stops even the superuser."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        (tmp_path / "file").write_text("no folder, and no database")
        return tmp_path / "file"

    def test_store(self, run: Run, file: Path) -> None:
        line = run(*TUNE, "--store", f"sqlite:///{file}").line
        assert f"{file} is damaged or no SQLite database" in line
        assert "move it aside" in line
        assert file.read_text() == "no folder, and no database"

    def test_cache(self, run: Run, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
        monkeypatch.setenv("M3GEN_CACHE", str(file / "cache"))
        line = run(*TUNE).line
        assert f"the facts cache at {file}/cache" in line
        assert "set M3GEN_CACHE" in line

    def test_out(self, run: Run, file: Path) -> None:
        line = run(*TUNE, "--out", file).line
        assert f"cannot write to {file}/tuning_db" in line
        assert "--no-export" in line

    def test_nothing_is_started(self, run: Run, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
        def started(*_: object, **__: object) -> None:
            raise AssertionError("a session was opened")

        monkeypatch.setattr(work, "open_session", started)
        assert run(*TUNE, "--out", file).line
