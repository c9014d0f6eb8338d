"""`m3gen store`: the database itself: what is in it, whether it is sound, and keeping it small."""

from __future__ import annotations

from typing import Annotated

import typer

from m3gen.cli.options import Json, StoreUrl

SOUND, FAULTS = 0, 1

app = typer.Typer(name="store", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def store() -> None:
    """Look after the database: info, check, merge, prune, vacuum."""


@app.command()
def info(store: StoreUrl = None, as_json: Json = False) -> None:
    """Say what the database holds: rows by table, evaluations by op, judges, compilers."""
    from dataclasses import asdict

    from m3gen import paths
    from m3gen.cli import output
    from m3gen.report.words import count
    from m3gen.store import Store

    with Store.open(store or paths.store_url(), read_only=True) as opened:
        found, where = opened.info(), str(opened.location)
    if as_json:
        by_op = [{"arch": a, "op": o, "evaluations": n} for (a, o), n in found.evaluations.items()]
        output.print_object("store info", {"store": where, **asdict(found), "evaluations": by_op})
        return
    size = "" if found.bytes is None else f", {found.bytes:,} bytes"
    print(f"{where}: schema {found.schema}{size}")
    print(", ".join(f"{name} {number:,}" for name, number in found.rows.items()))
    for (arch, op), number in found.evaluations.items():
        print(f"{arch} {op}: {count(number, 'evaluation')}")
    for title, counts in (("judge", found.judges), ("compiler", found.compilers)):
        for name, number in counts.items():
            print(f"{title} {name or '(none)'}: {count(number, 'evaluation')}")
    if found.running:
        print(f"{count(found.running, 'session')} not ended: running, or killed")


@app.command()
def check(store: StoreUrl = None, as_json: Json = False) -> None:
    """Say what is wrong with the file and what is in it.

    \b
    Exit status:
      0    sound
      1    faults, one a line
      2    bad input, or a file that cannot be opened
    """
    from m3gen import paths
    from m3gen.cli import output
    from m3gen.store import Store

    with Store.open(store or paths.store_url(), read_only=True) as opened:
        faults, where = opened.check(), str(opened.location)
    if as_json:
        output.print_object("store check", {"store": where, "faults": faults})
    else:
        print("\n".join(faults) or f"{where} is sound")
    raise typer.Exit(FAULTS if faults else SOUND)


@app.command()
def merge(
    sources: Annotated[
        list[str], typer.Argument(metavar="FROM...", help="URLs of the databases to take rows from.")
    ],
    store: StoreUrl = None,
    as_json: Json = False,
) -> None:
    """Take into the database every row of others that it does not have.

    Rows are the same by what they say, so that merging twice changes nothing. An evaluation that is there with another
    result stays as it is, and is named.
    """
    from dataclasses import asdict

    from m3gen import paths
    from m3gen.cli import output
    from m3gen.errors import UserError
    from m3gen.store import Store
    from m3gen.store.location import Location

    url = store or paths.store_url()
    if any(str(Location.parse(source)) == str(Location.parse(url)) for source in sources):
        raise UserError(f"{Location.parse(url)} cannot be merged into itself: name other databases")
    merges = {}
    with Store.open(url) as opened:
        for source in sources:
            with Store.open(source, read_only=True) as other:
                merges[str(other.location)] = opened.merge(other)
        where = str(opened.location)
    if as_json:
        output.print_object("store merge", {"store": where, "from": {n: asdict(m) for n, m in merges.items()}})
        return
    for name, merged in merges.items():
        new = ", ".join(f"{table} {number:,}" for table, number in merged.new.items()) or "nothing"
        print(f"{name} into {where}: new {new}")
        for one in merged.differing:
            print(f"  {one}: what is here stays")


@app.command()
def prune(
    judge: Annotated[
        list[str] | None,
        typer.Option("--judge", metavar="JUDGE", help="Take out all evaluations of this judge, and nothing else."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    store: StoreUrl = None,
    as_json: Json = False,
) -> None:
    """Take out what no winner can come from: evaluations of older versions of a judge where a newer one has judged.

    Machine-code facts, configurations and problems go when nothing refers to them any more. Verdicts of the
    correctness gate and sessions stay. m3gen store vacuum gives the space back.
    """
    from dataclasses import asdict

    from m3gen import paths
    from m3gen.cli import output
    from m3gen.cli.options import split
    from m3gen.store import Store

    with Store.open(store or paths.store_url()) as opened:
        pruned = opened.prune(None if judge is None else split(judge), dry_run=dry_run)
        where = str(opened.location)
    if as_json:
        output.print_object("store prune", {"store": where, "dry_run": dry_run, **asdict(pruned)})
    else:
        told = ", ".join(f"{name} {number:,}" for name, number in asdict(pruned).items())
        print(f"{where}: {'would take out' if dry_run else 'took out'} {told}")


@app.command()
def vacuum(store: StoreUrl = None) -> None:
    """Write the file anew without the space of rows that are gone."""
    from m3gen import paths
    from m3gen.store import Store

    with Store.open(store or paths.store_url()) as opened:
        before, after = opened.vacuum()
        print(f"{opened.location}: {before:,} bytes -> {after:,}")
