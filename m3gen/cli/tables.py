"""`m3gen tables`: the shipped tables, from the store into the release and through the years."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from m3gen.cli.options import AnyArch, Jobs, Json, Ops, StoreUrl, cpus

if TYPE_CHECKING:
    from m3gen.tables.check import RowCheck

SOUND, FOUND = 0, 1

app = typer.Typer(name="tables", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[
    Path | None,
    typer.Option("--tables", metavar="DIR", help="Folder of tables. Default: the checkout's, else the user's."),
]


@app.callback()
def tables() -> None:
    """Work on tuned tables: export, lint, diff, merge, check, validate, import, coverage."""


@app.command()
def export(
    arch: AnyArch = None,
    op: Ops = None,
    store: StoreUrl = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of tables to merge into, or of T4 files.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="m3gen: winners into tables. t4: every evaluation, one file a problem, in Kernel Tuner's T4.",
        ),
    ] = "m3gen",
    within: Annotated[
        float | None,
        typer.Option(
            "--within",
            metavar="PERCENT",
            min=0,
            max=10,
            help="Let a row name a verified configuration up to this much slower than its fastest, where fewer modules "
            "then serve all rows. By default 2, less than which predictions do not tell apart. Measured rows stay.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the store's verified winners into tables.

    Rows that could share a module name the fewest configurations that serve them all within a tie.

    Refused, with nothing written: two winners of one problem between which no rule decides, and a winner that has not
    passed the correctness gate as the text of today. `m3gen generate` makes the modules.

    \b
    Exit status:
      0    written
      1    written, and some problem of the store has no verified winner
      2    refused, bad input or environment
    """
    from m3gen import paths, targets
    from m3gen.cli import output, problems
    from m3gen.cli import tables_work as work
    from m3gen.errors import UserError
    from m3gen.evaluate.ranking import TIE
    from m3gen.report.tables import row_line

    if form not in ("m3gen", "t4"):
        raise UserError(f"--format {form!r}: expected m3gen or t4")
    if form == "t4" and out is None:
        raise UserError("--format t4 needs --out, the folder of its files")
    name = arch and targets.architecture(arch).name
    names = None if op is None else {one.name for one in problems.find_ops(op)}
    target = out or paths.tables_dir()
    output.require_writable(target, "name another folder with --out")
    regret = TIE if within is None else within / 100
    url = store or paths.store_url()
    done = work.export_stored(url, name, names, target, t4=form == "t4", regret=regret)
    if as_json:
        without = [problem.to_dict() for problem in done.without]
        output.print_object("tables export", {"files": [str(path) for path in done.files], "without": without})
    else:
        for path in done.files:
            print(path)
        for problem in done.without:
            print(f"no verified winner: {row_line(problem)}")
    raise typer.Exit(FOUND if done.without else SOUND)


@app.command()
def lint(folder: Folder = None, as_json: Json = False) -> None:
    """Say which rows can never match, are hidden, are outside of their op's space, or no longer hold.

    \b
    Exit status:
      0    nothing but notes
      1    an error or a stale row
      2    bad input
    """
    from m3gen.cli import output
    from m3gen.report import tables as words
    from m3gen.tables.lint import Gravity
    from m3gen.tables.lint import lint as lint_folder

    found = lint_folder(_folder(folder))
    if as_json:
        output.print_object("tables lint", {"remarks": [words.remark_object(one) for one in found]})
    else:
        print("\n".join(words.remarks(found)))
    raise typer.Exit(FOUND if any(one.gravity is not Gravity.NOTE for one in found) else SOUND)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A table, or a folder of tables.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A table, or a folder of tables.")],
    as_json: Json = False,
) -> None:
    """Say which rows differ between two tables or releases: old, new, ratio, and on what evidence.

    A ratio is old time over new, and only given for times of the same judge.

    \b
    Exit status:
      0    the same
      1    some row differs
      2    bad input
    """
    from m3gen.cli import output
    from m3gen.report import tables as words
    from m3gen.tables.diff import compare

    found = compare(old, new)
    if as_json:
        changes = [words.change_object(one) for one in found.changes]
        output.print_object("tables diff", {"changes": changes, "same": found.same})
    else:
        print("\n".join(words.difference(found)))
    raise typer.Exit(FOUND if found.changes else SOUND)


@app.command()
def merge(
    into: Annotated[Path, typer.Argument(metavar="INTO", help="The folder of tables that changes.")],
    sources: Annotated[list[Path], typer.Argument(metavar="FROM...", help="Tables, or folders of tables.")],
    prefer: Annotated[
        str,
        typer.Option("--prefer", metavar="WHICH", help="Of two rows between which no rule decides: old or new."),
    ] = "neither",
    as_json: Json = False,
) -> None:
    """Merge tables: measured before predicted, a newer judge before an older, the faster of two judged alike.

    \b
    Exit status:
      0    merged
      1    rows contradict each other; nothing was written unless --prefer said which to take
      2    bad input or environment
    """
    from m3gen.cli import output
    from m3gen.errors import UserError
    from m3gen.report import tables as words
    from m3gen.tables.union import Prefer, merge_folders

    if prefer not in list(Prefer):
        raise UserError(f"--prefer {prefer!r}: expected {', '.join(Prefer)}")
    unions = {str(path): found for path, found in merge_folders(into, sources, Prefer(prefer)).items()}
    conflicts = [one for found in unions.values() for union in found for one in union.conflicts]
    written = not conflicts or prefer != Prefer.NEITHER
    if as_json:
        told = [{"problem": one.problem.to_dict(), "reason": one.reason} for one in conflicts]
        output.print_object("tables merge", {"tables": list(unions), "conflicts": told, "written": written})
    else:
        print("\n".join(words.merges(unions, written=written)))
    raise typer.Exit(FOUND if conflicts else SOUND)


@app.command()
def check(
    arch: AnyArch = None,
    op: Ops = None,
    folder: Folder = None,
    jobs: Jobs = None,
    every: Annotated[bool, typer.Option("--all", help="Name every row, not only those that changed.")] = False,
    as_json: Json = False,
) -> None:
    """Compile every row with the Triton that is here: the same resources, no spill?

    To run before a Triton upgrade is taken, in an environment that has the new one. Times are not judged anew.

    \b
    Exit status:
      0    every row as it was
      1    a row changed, spills, or does not compile
      2    bad input or environment
    """
    from m3gen.cli import output
    from m3gen.compiler.fingerprint import fingerprint
    from m3gen.report import tables as words
    from m3gen.tables.validated import Kept

    found = _checked(arch, op, _folder(folder), jobs)
    here = fingerprint()
    if as_json:
        output.print_object("tables check", {"compiler": here, "rows": [words.check_object(one) for one in found]})
    else:
        print("\n".join(words.checks(found, here, every=every)))
    raise typer.Exit(SOUND if all(one.kept is Kept.SAME for one in found) else FOUND)


@app.command()
def validate(
    arch: AnyArch = None,
    op: Ops = None,
    folder: Annotated[
        Path | None,
        typer.Option("--tables", metavar="DIR", help="Folder of tables. Default: those that ship with m3gen."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where verdicts go. Default: the user's data folder, or a site's."
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Compile the rows of another compiler or text with the Triton that is here, and keep what came of it.

    The runtime reads the verdicts: a demoted row that compiles here with the same resources goes before one that
    nobody has tried, and one that fails is passed over.

    \b
    Exit status:
      0    every row that was tried may run
      1    some fail
      2    bad input or environment
    """
    from importlib.resources import files

    from m3gen import paths
    from m3gen.cli import output
    from m3gen.cli import tables_work as work
    from m3gen.compiler.fingerprint import fingerprint
    from m3gen.report import tables as words
    from m3gen.tables.validated import Kept

    tables = folder or Path(str(files("m3gen.tuning_db")))
    target = out or paths.data_dir() / "validated"
    output.require_writable(target, "name another folder with --out")
    here = fingerprint()
    found = [one for one in _checked(arch, op, tables, jobs) if one.stale or one.point.compiler != here]
    written = work.keep_verdicts(found, here, target)
    if as_json:
        rows = [words.check_object(one) for one in found]
        output.print_object("tables validate", {"compiler": here, "rows": rows, "files": list(map(str, written))})
    else:
        print("\n".join([*words.checks(found, here, every=False), *map(str, written)]))
        if not found:
            print(f"every row of {tables} is of {here} and of the templates of today: nothing to validate")
    raise typer.Exit(FOUND if any(one.kept is Kept.FAILS for one in found) else SOUND)


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Other projects' tables.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="vllm, aiter-csv, aiter-json, triton or t4; told by the content by default.",
        ),
    ] = None,
    arch: AnyArch = None,
    op: Annotated[
        str | None,
        typer.Option(
            "--op", metavar="OP", help="Say which configurations of this op they point to.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read other projects' tuned configurations: vLLM's fused MoE, AITER, Triton's autotune cache, Kernel Tuner's T4.

    For comparison and as seeds: they are of other kernels, so nothing of them is taken into a table. With --arch and
    --op, the configurations of that op that share their settings, to give to m3gen verify --config.
    """
    import json

    from m3gen.cli import output, problems
    from m3gen.errors import UserError
    from m3gen.report import tables as words
    from m3gen.report.words import problem_line
    from m3gen.tables import foreign

    if (op is None) != (arch is None):
        raise UserError("--op and --arch go together: the space of an op is that of an architecture")
    rows = [row for file in files for row in foreign.read(file, kind)]
    found = []
    if op is not None and arch is not None:
        device = problems.find_device(arch, None)
        for problem in problems.build(device, op=[op], rows=["16"]):
            found += [(problem, one) for one in foreign.seeds(rows, problems.find_ops([op])[0], problem, device)]
    if as_json:
        seeds = [{"problem": problem.to_dict(), "config": config.to_dict()} for problem, config in found]
        objects = [words.foreign_object(row) for row in rows]
        output.print_object("tables import", {"rows": objects, "seeds": seeds})
        return
    console = output.stdout()
    console.print(words.foreign(rows))
    console.print(f"{len(rows)} rows of other kernels, none of them trusted")
    for problem, config in found:
        console.print(f"seed for {problem_line(problem)}: {json.dumps(config.to_dict())}", soft_wrap=True)


@app.command()
def coverage(
    arch: AnyArch = None,
    op: Ops = None,
    folder: Annotated[
        Path | None,
        typer.Option("--tables", metavar="DIR", help="Ask this folder's tables first; modules lie beside it."),
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", metavar="TOKENS", help="Contexts asked for, 8192 by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which rung of the runtime's ladder answers each load.

    Op by shard (TP 1, 2, 4, 8), both dtypes of the KV cache, 1 to 512 rows.

    \b
    Exit status:
      0    a row answers every load
      1    some load gets a demoted row, a fallback or nothing
      2    bad input
    """
    from m3gen.cli import output
    from m3gen.cli import tables_work as work
    from m3gen.cli.options import integers
    from m3gen.report import coverage as words
    from m3gen.targets import ARCHITECTURES, architecture

    contexts = integers("--context", context, (8192,))
    names = [architecture(arch).name] if arch else list(ARCHITECTURES)
    cells = {name: work.coverage(name, op, folder, contexts) for name in names}
    if as_json:
        objects = [
            {"problem": one.problem.to_dict(), "tp": one.ranks, "rung": one.rung}
            for found in cells.values()
            for one in found
        ]
        output.print_object("tables coverage", {"cells": objects})
    else:
        for name, found in cells.items():
            answered = sum(map(words.answered, found))
            output.stdout().print(f"{name}: rows of tables answer {answered} of {len(found)} loads")
            output.stdout().print(words.table(found))
    every = all(words.answered(one) for found in cells.values() for one in found)
    raise typer.Exit(SOUND if every else FOUND)


def _folder(named: Path | None) -> Path:
    from m3gen import paths
    from m3gen.errors import UserError

    found = named or paths.tables_dir()
    if not found.is_dir():
        raise UserError(f"there is no folder of tables at {found}: name one with --tables")
    return found


def _checked(arch: str | None, op: list[str] | None, folder: Path, jobs: int | None) -> list[RowCheck]:
    from m3gen import targets
    from m3gen.cli import output, problems
    from m3gen.cli import tables_work as work

    name = arch and targets.architecture(arch).name
    names = None if op is None else {one.name for one in problems.find_ops(op)}
    return work.checked(folder, name, names, jobs or cpus(), output.stderr())
