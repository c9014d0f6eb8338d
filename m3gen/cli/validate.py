"""`m3gen validate`: the predictor held against times that others measured and published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from m3gen.cli.options import AnyArch, Jobs, Json

if TYPE_CHECKING:
    from m3gen.evaluate.ablation import Ablated
    from m3gen.evaluate.points import PointSet

HELD, MISSED = 0, 1


def validate(
    points: Annotated[
        list[Path] | None,
        typer.Option(
            "--points",
            metavar="FILE",
            help="A file of points, in place of those that come with m3gen. Repeat it for several.",
        ),
    ] = None,
    arch: AnyArch = None,
    ablation: Annotated[
        int,
        typer.Option(
            "--ablation",
            metavar="N",
            min=0,
            help="Also compile N random candidates of each of four spaces (gfx942 and sm_90), and show what the "
            "predictor's winners cost when one of its terms is left out.",
        ),
    ] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 1 when a prediction misses its tolerance.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Also write all of it as a page, such as docs/predictor.md."),
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Hold the predictor against published measurements.

    Each point is a published time and the sum of op times that it is, such as a block score at two contexts, one
    less the other. The kernels are compiled (or found in the cache) and predicted as tune does it; no GPU is
    needed and nothing is measured.

    \b
    Exit status:
      0    done, whatever the predictions are worth
      1    with --strict: a prediction misses its tolerance
      2    bad input or environment
      130  interrupted
    """
    from m3gen.cli import output, work
    from m3gen.cli.options import cpus
    from m3gen.evaluate.validation import requests
    from m3gen.evaluate.validation import validate as judge
    from m3gen.report import predictor_page, validation

    chosen = _points(points, arch)
    if write is not None:
        _require_place(write)
    waiting = requests(chosen)
    tell = output.stderr()
    tell.print(f"{len(waiting)} configurations to compile, those in the cache excepted")
    found = judge(chosen, work.compiled(waiting, jobs or cpus(), lambda _: None))
    ablated = _ablated(ablation, arch, jobs or cpus()) if ablation else []
    if as_json:
        output.print_object("validate", validation.report_object(found, ablated))
    else:
        output.stdout().print(validation.report(found, ablated), soft_wrap=True)
    if write is not None:
        arguments = _arguments(points, arch, ablation, write)
        write.write_text(predictor_page.page(found, ablated, arguments), encoding="utf-8")
        tell.print(f"written: {write}")
    raise typer.Exit(MISSED if strict and found.missed else HELD)


def _points(paths: list[Path] | None, arch: str | None) -> PointSet:
    """The points of the files, else the shipped ones, of one architecture if one is named."""
    from m3gen.errors import UserError
    from m3gen.evaluate.points import read, shipped
    from m3gen.evaluate.validation import of_arch
    from m3gen.targets import architecture

    found = read(paths) if paths else shipped()
    if arch is not None:
        found = of_arch(found, architecture(arch).name)
    if not found.points and not found.choices:
        where = ", ".join(map(str, paths)) if paths else "m3gen"
        raise UserError(
            f"{where} has no points{f' on {arch}' if arch else ''}: drop --arch, or name a file with --points"
        )
    return found


def _ablated(candidates: int, arch: str | None, jobs: int) -> list[Ablated]:
    from m3gen.cli import output, work
    from m3gen.evaluate import ablation
    from m3gen.targets import architecture

    archs = ablation.ARCHS if arch is None else tuple(a for a in ablation.ARCHS if a == architecture(arch).name)
    waiting = ablation.requests(candidates, archs)
    tell = output.stderr()
    tell.print(f"{len(waiting)} candidates to compile for the ablation, those in the cache excepted")
    return ablation.ablate(
        work.compiled(
            waiting, jobs, lambda n: tell.print(f"{n} of {len(waiting)}") if n % 20 == 0 else None, work.ABLATE
        )
    )


def _require_place(path: Path) -> None:
    from m3gen.cli import output
    from m3gen.errors import UserError

    if path.is_dir():
        raise UserError(f"--write {path} is a folder: name a file in it, such as {path / 'predictor.md'}")
    output.require_writable(path.parent, "name another file with --write")


def _arguments(points: list[Path] | None, arch: str | None, ablation: int, write: Path) -> list[str]:
    """What to give `m3gen validate` for the same page."""
    named = [part for path in points or () for part in ("--points", str(path))]
    narrowed = ["--arch", arch] if arch else []
    return [*named, *narrowed, *(["--ablation", str(ablation)] if ablation else []), "--write", str(write)]
