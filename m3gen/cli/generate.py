"""`m3gen generate`: modules from tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from m3gen.cli.options import Arch, Json


def generate(
    arch: Arch,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", metavar="DIR", help="Where the tables are. Default: the checkout's, else the user's."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where modules go. Default: the checkout's generated/, else the user's.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the modules of the winning configurations.

    They come from the tables of ARCH. Made again from the same tables, the modules are the same to the byte.
    """
    from m3gen import paths, targets
    from m3gen.cli import output, work
    from m3gen.errors import UserError

    name = targets.architecture(arch).name
    source = tables or paths.tables_dir()
    if not source.is_dir():
        raise UserError(
            f"there is no folder of tables at {source}: run m3gen tune first, or name it with --tables"
        )
    target = out or paths.generated_dir()
    output.require_writable(target, "name another folder with --out")
    modules = work.generate(name, source, target)
    if as_json:
        fields = {"arch": name, "tables": str(source), "modules": [str(path) for path in modules]}
        output.print_object("generate", fields)
    else:
        for path in modules:
            print(path)
