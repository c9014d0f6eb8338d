"""`m3gen mnemonics`: the instructions of everything that ships, and whether the emulator knows them all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from m3gen.cli.options import Jobs, Json

if TYPE_CHECKING:
    from m3gen.cli.work import Candidate

COVERED, MISSING = 0, 1


def mnemonics(
    arch: Annotated[
        list[str],
        typer.Option("--arch", metavar="ARCH", help="gfx942 or gfx950. Repeat it or separate values by commas."),
    ],
    every: Annotated[
        bool, typer.Option("--all", help="The default configuration of every op beside the shipped winners.")
    ] = False,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", metavar="DIR", help="Where the tables are. Default: the checkout's, else the user's."
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """List the instructions of the compiled kernels, and which of them the emulator runs.

    Compiles the winning configurations of the tables of ARCH, with --all also the default configuration of
    every op on the problems of m3gen verify --all, and reads the machine code. A mnemonic is covered when the
    emulator decodes every line with it. Kernels that are alike count once; cycles are those that an
    instruction occupies its unit for one wave, and the section is that of AMD's ISA guide.

    \b
    Exit status:
      0    every mnemonic is covered
      1    one is not, or a configuration does not compile
      2    bad input or environment
      130  interrupted
    """
    from m3gen import paths
    from m3gen.cli import output, problems, work
    from m3gen.cli.options import cpus, split
    from m3gen.report import mnemonics as report

    names = [problems.find_device(one, None).arch for one in split(arch)]
    source = tables or paths.tables_dir()
    candidates = {name: work.distinct(_variants(name, source, every)) for name in names}
    total = sum(map(len, candidates.values()))
    output.stderr().print(f"{total} to compile, {jobs or cpus()} at a time")
    listings = [
        report.listing(name, work.mnemonics(waiting, jobs or cpus())) for name, waiting in candidates.items()
    ]
    if as_json:
        output.print_object("mnemonics", {"archs": [report.listing_object(one) for one in listings]})
    else:
        for one in listings:
            output.stdout().print(report.table(one))
            for reason in one.failed:
                output.stdout().print(f"{one.arch}: {reason}", soft_wrap=True)
            output.stdout().print(f"{one.arch}: {one.summary}", soft_wrap=True)
    raise typer.Exit(COVERED if all(one.complete for one in listings) else MISSING)


def _variants(arch: str, tables: Path, every: bool) -> list[Candidate]:
    """The winners of the tables of an architecture and, with `every`, the defaults of all ops."""
    from m3gen.cli import defaults
    from m3gen.cli.work import Candidate
    from m3gen.errors import UserError
    from m3gen.ops.coverage import ALL
    from m3gen.space import Config
    from m3gen.tables.load import load
    from m3gen.targets import Vendor, architecture

    if architecture(arch).vendor is not Vendor.AMD:
        raise UserError(f"only AMD's machine code can be executed, {arch} is not: choose gfx942 or gfx950")
    paths = sorted((tables / arch).glob("*.json"))
    if not paths and not every:
        raise UserError(
            f"there is no table of {arch} in {tables}: run m3gen tune --arch {arch} first, name another folder "
            "with --tables, or take the defaults with --all"
        )
    shipped = [
        Candidate(point.problem, Config(table.configs[point.config]))
        for table in map(load, paths)
        for point in table.points
    ]
    return [*shipped, *(defaults.candidates(arch, None, ALL) if every else [])]
