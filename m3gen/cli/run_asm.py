"""`m3gen run-asm`: a script's Triton kernels, executed as the machine code of an AMD GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from m3gen.cli.options import Arch

if TYPE_CHECKING:
    from m3gen.emulator import Emulator, Profile

FAULT = 1


def run_asm(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="A Python script that launches Triton kernels.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGS]", help="The script's own arguments.", show_default=False),
    ] = None,
    arch: Arch = "gfx942",
    listing: Annotated[
        str | None,
        typer.Option(
            "--listing",
            metavar="KERNEL",
            help="Print the machine code of this kernel's first launch, with counts.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything that was counted.")
    ] = None,
    early: Annotated[
        bool,
        typer.Option("--early", help="Complete memory operations at once: a wait that is missing does not show."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Order of a workgroup's waves.")] = 0,
) -> None:
    """Run a script whose Triton kernels, on CPU tensors, are executed as ARCH's machine code.

    Every launch is specialised and compiled as on the GPU, executed, and profiled. Prints a table of the
    launches behind whatever the script prints. Memory completes as late as the code's waits allow.

    \b
    Exit status:
      0    the script ran
      1    a kernel did what no kernel may (one line says which instruction), or the script raised
      2    bad input, or an instruction that the emulator does not know
      130  interrupted
    A script that exits with a status of its own gives that.
    """
    from m3gen.cli import output
    from m3gen.emulator import EmulationError, emulating
    from m3gen.report.launches import launches
    from m3gen.report.listing import WIDTH
    from m3gen.report.listing import listing as listed

    _require(script, json_file)
    status = 0
    with emulating(arch, late=not early, seed=seed, profile=True) as emulator:
        try:
            status = _run(script, arguments or [])
        except EmulationError as error:
            output.stderr().print(f"m3gen: {_where(emulator)}: {type(error).__name__}: {error}", soft_wrap=True)
            raise typer.Exit(FAULT) from None
    output.stdout(least=WIDTH).print(launches(emulator.profiles))
    if json_file is not None:
        _write(json_file, emulator.profiles)
    if listing is not None:
        sys.stdout.write("\n" + listed(_of(emulator.profiles, listing)))
    raise typer.Exit(status)


def _require(script: Path, json_file: Path | None) -> None:
    from m3gen.errors import UserError

    if not script.is_file():
        raise UserError(f"there is no script {script}")
    if json_file is not None and not json_file.parent.is_dir():
        raise UserError(f"there is no folder {json_file.parent} to write {json_file.name} to")


def _run(script: Path, arguments: list[str]) -> int:
    """As `python SCRIPT ARGS` would; its exit status."""
    import runpy

    before = sys.argv, sys.path[:]
    sys.argv, sys.path[:0] = [str(script), *arguments], [str(script.resolve().parent)]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        if ended.code is not None and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
            return FAULT
        return ended.code or 0
    finally:
        sys.argv, sys.path[:] = before
    return 0


def _where(emulator: Emulator) -> str:
    return f"{emulator.running} (launch {emulator.launches})"


def _of(profiles: list[Profile], kernel: str) -> Profile:
    """The first launch of a kernel; `UserError` naming those that ran."""
    from m3gen.errors import UserError

    for profile in profiles:
        if profile.kernel == kernel:
            return profile
    names = ", ".join(sorted({profile.kernel for profile in profiles})) or "none"
    raise UserError(f"no launch of {kernel}; launched: {names}")


def _write(path: Path, profiles: list[Profile]) -> None:
    import json

    from m3gen import __version__
    from m3gen.errors import UserError

    found = {"m3gen": __version__, "command": "run-asm", "launches": [profile.as_dict() for profile in profiles]}
    try:
        path.write_text(json.dumps(found, allow_nan=False) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror})") from None
