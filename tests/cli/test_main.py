"""What becomes of errors, interrupts and closed pipes; how little a start imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from m3gen import __version__
from m3gen.cli import work
from m3gen.errors import UserError
from tests.cli.conftest import Run
from tests.store.samples import ROOT

VERBS = ("tune", "show", "verify", "generate", "targets", "run-asm")


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )


def test_version(run: Run) -> None:
    assert run("--version").out == f"m3gen {__version__}\n"


def test_help_lists_every_verb(run: Run) -> None:
    ran = run("--help")
    assert ran.status == 0
    assert all(f"\n  {verb} " in ran.out for verb in VERBS)


def test_without_a_verb_there_is_the_help(run: Run) -> None:
    ran = run()
    assert "Commands:" in ran.out + ran.err  # typer's versions do not agree on the stream and the status


def test_the_exit_statuses_of_tune_are_in_its_help(run: Run) -> None:
    text = run("tune", "--help").out
    for status, meaning in (
        ("0", "every problem"),
        ("1", "some problem"),
        ("2", "bad input"),
        ("130", "inter"),
    ):
        assert any(line.split()[:1] == [status] and meaning in line for line in text.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune",),
        ("dance",),
        ("tune", "--arch"),
        ("tune", "--arch", "gfx942", "--jobs", "0"),
        ("tune", "--arch", "gfx942", "--seed", "x"),
        ("tune", "--arch", "gfx942", "--fast"),
    ],
)
def test_wrong_usage_ends_with_2_and_nothing_on_standard_output(run: Run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err


def test_a_users_error_is_one_line_however_it_was_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise UserError("no such\n  thing: make one")

    monkeypatch.setattr("m3gen.targets.device", fail)
    assert run("targets", "MI300X").line == "m3gen: no such thing: make one"


def test_any_other_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of m3gen")

    monkeypatch.setattr("m3gen.targets.device", fail)
    monkeypatch.setattr("sys.argv", ["m3gen", "targets", "MI300X"])
    from m3gen.cli import main

    with pytest.raises(RuntimeError, match="a fault of m3gen"):
        main.main()


def test_an_interrupt_outside_a_session_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "generate", interrupted)
    monkeypatch.setattr("pathlib.Path.is_dir", lambda path: True)
    ran = run("generate", "--arch", "gfx942")
    assert (ran.status, ran.out) == (130, "")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("arguments", ["targets --json", "--help"])
def test_a_closed_pipe_is_quiet(arguments: str) -> None:
    # The reader is gone before the writer has started.
    writer = f"sleep 0.5; {sys.executable} -m m3gen.cli.main {arguments}"
    script = f"( {writer} ) | true; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert (ran.stdout, ran.stderr) == ("141\n", "")


def test_help_imports_neither_the_heavy_packages_nor_the_rooms() -> None:
    ran = python(
        "import sys, typer; typers = set(sys.modules); sys.argv = ['m3gen', 'tune', '--help']\n"
        "from m3gen.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'triton', 'numpy', 'optuna', 'sqlalchemy', 'jinja2', 'rich', 'm3gen.ops'}\n"
        "print(sorted(heavy & set(sys.modules) - typers), file=sys.stderr)"
    )
    assert ran.stderr == "[]\n"


def test_the_parent_of_a_session_never_imports_torch_or_triton() -> None:
    ran = python(
        "import sys\n"
        "from m3gen.cli import live, output, problems, stored, work\n"
        "from m3gen.report import outcome, predictor_page, validation\n"
        "from m3gen.evaluate import ablation, points\n"
        "from m3gen.search import session\n"
        "from m3gen.search.executor import LocalExecutor\n"
        "from m3gen.search.rooms import real_rooms\n"
        "from pathlib import Path\n"
        "import m3gen.codegen.generate, m3gen.tables.export, m3gen.tables.findings\n"
        "real_rooms(LocalExecutor(1), 'gfx942', deadline_s=1, verify_deadline_s=1, cache_dir=Path('/nowhere'))\n"
        "print(sorted({'torch', 'triton'} & set(sys.modules)))"
    )
    assert ran.stdout == "[]\n", ran.stderr
