"""`m3gen tables` and `m3gen explain` from the outside; the compiler is a fake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m3gen import runtime
from m3gen.cli import tables_work
from m3gen.codegen.render import render
from m3gen.compiler.fingerprint import fingerprint
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.spec import Status
from m3gen.store import Store
from m3gen.tables.export import export
from m3gen.tables.findings import launch_code
from m3gen.tables.load import load
from tests.cli.conftest import Run
from tests.runtime.conftest import make
from tests.store.samples import facts, predicted
from tests.tables.winners import OP, config, finding, fp8, problem, winner


@pytest.fixture(autouse=True)
def no_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    monkeypatch.setenv("M3GEN_SITE", str(tmp_path / "site"))
    monkeypatch.delenv("M3GEN_TABLES", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One row that kept its machine code."""
    root = tmp_path / "tables"
    export([replace(finding(problem()), launches=(launch_code(facts()),))], root)
    return root


def compiler(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Every request is answered with the facts of `samples`, changed."""

    def compiled(requests: Sequence[CompileRequest], jobs: int, progress: object) -> list[CompileResult]:
        return [
            CompileResult(
                status=Status.OK,
                keys=(("key",),) * len(request.problems),
                facts={"key": replace(facts(), **changes)},
                source_sha=render(OP, request.problems[0], request.config).sha,
            )
            for request in requests
        ]

    monkeypatch.setattr(tables_work, "compiled", compiled)


def store_with(url: str, *, verified: bool = True) -> None:
    one = winner(problem(), 10.0)
    with Store.open(url) as store:
        session = store.begin({}, [problem()])
        store.commit_facts("key", replace(facts(), compiler=one.compiler))
        evaluation = replace(one.evaluation, facts=("key",))
        store.commit_evaluation(session, problem(), one.config, evaluation)
        store.commit_evaluation(session, problem(rows=16), one.config, predicted(20.0, facts=("key",)))
        if verified:
            store.commit_verification(problem(), one.config, one.verification)
        store.end(session, "done")


# Export


def test_export_writes_winners_with_their_machine_code(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store_with(url)
    ran = run("tables", "export", "--store", url, "--out", tmp_path / "out")
    path = tmp_path / "out" / "gfx942" / "sparse_decode.json"
    assert ran.status == 0
    assert ran.out.splitlines() == [str(path)]
    table = load(path)
    assert [code.code_sha for code in table.code.values()] == [facts().code_sha]
    assert [len(point.launches) for point in table.points] == [1, 1]


def test_rows_within_a_tie_share_a_configuration(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    a, b = config(problem()), config(problem(), num_warps=2)
    many = problem(rows=16)
    with Store.open(url) as store:
        session = store.begin({}, [problem(), many])
        for chosen, times in ((a, (10.0, 20.2)), (b, (10.1, 20.0))):
            one = winner(problem(), chosen=chosen)
            store.commit_facts(chosen.sha, replace(facts(), compiler=one.compiler))
            store.commit_verification(problem(), chosen, one.verification)
            for of, us in zip((problem(), many), times, strict=True):
                evaluation = replace(winner(of, us, chosen=chosen).evaluation, facts=(chosen.sha,))
                store.commit_evaluation(session, of, chosen, evaluation)
        store.end(session, "done")
    for within, configs in (("0", 2), (None, 1)):
        out = tmp_path / str(within)
        options = [] if within is None else ["--within", within]
        assert run("tables", "export", "--store", url, "--out", out, *options).status == 0
        table = load(out / "gfx942" / "sparse_decode.json")
        assert len(table.configs) == configs
        shown = run("show", "--store", url, "--json").object["winners"]
    assert {(point.problem.rows, point.us) for point in table.points} == {
        (row["problem"]["rows"], row["value_us"]) for row in shown
    }


def test_export_names_problems_without_a_verified_winner(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store_with(url, verified=False)
    ran = run("tables", "export", "--store", url, "--out", tmp_path / "out")
    assert ran.status == 1
    assert ran.out.count("no verified winner: gfx942 sparse_decode") == 2
    assert not (tmp_path / "out" / "gfx942").exists()


def test_export_as_t4(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store_with(url)
    ran = run("tables", "export", "--store", url, "--format", "t4", "--out", tmp_path / "out")
    first, second = ran.out.splitlines()
    back = run("tables", "import", first, "--json").object
    assert [row["us"] for row in back["rows"]] == [10.0]
    assert Path(second).parent == tmp_path / "out" / "gfx942"


def test_an_unknown_format(run: Run) -> None:
    assert "--format 'csv': expected m3gen or t4" in run("tables", "export", "--format", "csv").line


# Check, validate


def test_check_of_rows_that_are_as_they_were(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(monkeypatch)
    ran = run("tables", "check", "--tables", folder)
    assert ran.status == 0
    assert ran.out == "gfx942/sparse_decode.json: 1 row: 1 same\n"


def test_check_names_the_row_and_what_changed(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(monkeypatch, registers=300, vector_spills=8)
    ran = run("tables", "check", "--tables", folder)
    assert ran.status == 1
    assert "1 row: 1 fails" in ran.out
    assert "sparse_decode_kernel registers 100 -> 300, sparse_decode_kernel vector_spills 0 -> 8" in ran.out


def test_validated_rows_are_known_to_the_runtime(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(home, replace(finding(problem()), launches=(launch_code(facts()),)))
    path = home / "tuning_db" / "gfx942" / "sparse_decode.json"
    path.write_text(path.read_text().replace(fingerprint(), "triton-3.6.0-0123"))
    compiler(monkeypatch, shared_bytes=0)
    ran = run("tables", "validate", "--tables", home / "tuning_db", "--json")
    assert ran.status == 0
    assert [row["kept"] for row in ran.object["rows"]] == ["changed"]
    [file] = ran.object["files"]
    assert file == str(home / "validated" / "gfx942.json")
    selection = runtime.load("gfx942").sparse_decode.select(problem())
    assert "it compiles here with other resources" in selection.reason


def test_nothing_to_validate(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(monkeypatch)
    ran = run("tables", "validate", "--tables", folder)
    assert ran.status == 0
    assert "nothing to validate" in ran.out


def test_no_such_table(run: Run, folder: Path) -> None:
    assert "there is no such table" in run("tables", "check", "--tables", folder, "--arch", "sm_90").line


# The others


def test_lint(run: Run, folder: Path) -> None:
    sound = run("tables", "lint", "--tables", folder)
    assert sound.status == 0
    path = folder / "gfx942" / "sparse_decode.json"
    path.write_text(path.read_text().replace('"compute_units": 304', '"compute_units": 81'))
    ran = run("tables", "lint", "--tables", folder)
    assert ran.status == 1
    assert "row 0: it can never match: no device of gfx942 has 81 compute units" in ran.out
    assert "is not the file of the manifest" in ran.out


def test_diff(run: Run, folder: Path, tmp_path: Path) -> None:
    export([finding(problem(), 5.0, chosen=config(problem(), num_warps=1)), finding(fp8())], tmp_path / "new")
    ran = run("tables", "diff", folder, tmp_path / "new")
    assert ran.status == 1
    assert "10.0 us predicted by predict-amd-1" in ran.out
    assert "2.00x" in ran.out
    assert "num_warps 4 -> 1" in ran.out
    assert "+ gfx942 sparse_decode" in ran.out
    assert run("tables", "diff", folder, folder).out == "0 rows differ, 1 are the same\n"


def test_merge_with_a_conflict(run: Run, folder: Path, tmp_path: Path) -> None:
    theirs = finding(problem(), 5.0, chosen=config(problem(), num_warps=1), judge="replay-1")
    export([theirs], tmp_path / "new")
    ran = run("tables", "merge", folder, tmp_path / "new")
    assert ran.status == 1
    assert "conflict on gfx942 sparse_decode" in ran.out
    assert "nothing was written" in ran.out
    run("tables", "merge", folder, tmp_path / "new", "--prefer", "new")
    assert load(folder / "gfx942" / "sparse_decode.json").points[0].us == 5.0


def test_import_with_seeds(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "E=8,N=1.json"
    path.write_text('{"16": {"BLOCK_SIZE_N": 64, "num_warps": 2}}')
    ran = run("tables", "import", path, "--arch", "gfx942", "--op", "sparse_decode")
    assert ran.status == 0
    assert "1 rows of other kernels, none of them trusted" in ran.out
    assert 'seed for sparse_decode TP 4 bf16 rows 16: {"' in ran.out
    assert "--op and --arch go together" in run("tables", "import", path, "--op", "sparse_decode").line


def test_coverage_counts_by_rung(run: Run) -> None:
    ran = run("tables", "coverage", "--arch", "gfx942", "--op", "sparse_decode", "--json")
    rungs = {cell["rung"] for cell in ran.object["cells"]}
    assert "release" in rungs
    assert len(ran.object["cells"]) == 80
    assert ran.status == (0 if rungs == {"release"} else 1)


def test_explain_says_which_field_differs_and_what_runs(run: Run, home: Path) -> None:
    make(home, finding(problem(group_size=16, page_size=128, topk=16, context=2048)))
    ran = run(
        "explain", "--arch", "gfx942", "--tp", "2", "--kv", "bf16", "--rows", "48", "--tables", home / "tuning_db"
    )
    assert "- override   its nearest row has kv_heads 1, not 2" in ran.out
    assert "runs m3gen_generated_" in ran.out or "runs m3gen.generated.gfx942" in ran.out
    assert ran.out.count("  > ") == 1


def test_explain_of_an_op_without_a_table(run: Run) -> None:
    ran = run("explain", "--arch", "gfx942", "--op", "kv_zero", "--rows", "1", "--kv", "bf16", "--tables", "x")
    assert "x is not a folder" in ran.line
