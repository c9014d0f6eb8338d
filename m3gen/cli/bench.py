"""`m3gen bench`: what m3gen's own machinery is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from m3gen.cli.options import Jobs, Json, cpus, split

app = typer.Typer(no_args_is_help=True, help="Benchmarks of m3gen's own machinery.")


@app.callback()
def bench() -> None:
    """Benchmarks of m3gen's own machinery."""


@app.command()
def search(
    spaces: Annotated[
        list[Path] | None,
        typer.Option(
            "--spaces",
            metavar="FILE",
            help="A recorded space: reduced, a cache of Kernel Tuner, or T4 results. Repeat it for several. "
            "Default: those of the checkout, in benchmarks/spaces.",
        ),
    ] = None,
    samplers: Annotated[
        list[str] | None,
        typer.Option(
            "--samplers",
            metavar="NAME",
            help="Samplers by name; kernel_tuner:NAME for a strategy of Kernel Tuner. Default: all. "
            "Repeat it or separate values by commas.",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", min=1, help="Runs of each.")] = 25,
    budget: Annotated[int, typer.Option("--budget", metavar="N", min=1, help="Evaluations a run.")] = 100,
    sibling: Annotated[
        bool,
        typer.Option(
            "--sibling", help="Warm each search with the record of each other device of its kernel and vendor."
        ),
    ] = False,
    sibling_budget: Annotated[
        int | None,
        typer.Option(
            "--sibling-budget",
            metavar="N",
            min=1,
            help="With --sibling: of the other device only what a search of N evaluations saw. Default: all.",
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Score the samplers on recorded spaces, where every config was once timed.

    0 is random search, 1 is the optimum at once. Where Kernel Tuner is installed its strategies run beside, in its
    own simulation mode, with the same budget. No GPU is needed.

    \b
    Exit status:
      0    done, whatever the samplers are worth
      2    bad input or environment
      130  interrupted
    """
    from m3gen.cli import output
    from m3gen.replay.outcome import outcome
    from m3gen.replay.plan import plan
    from m3gen.replay.runs import run_all
    from m3gen.report import search as report

    planned = plan(spaces or [], split(samplers), repeats, budget, sibling=sibling, sibling_budget=sibling_budget)
    tell = output.stderr()
    tell.print(f"{len(planned.runs)} runs on {len(planned.spaces)} spaces")
    ran = []
    for one in run_all(planned.runs, jobs or cpus()):
        ran.append(one)
        if len(ran) % 100 == 0:
            tell.print(f"{len(ran)} of {len(planned.runs)}")
    found = outcome(ran, {str(path): space.name for path, space in planned.spaces.items()})
    if as_json:
        output.print_object("bench search", report.report_object(found, planned.notes))
    else:
        wide = output.stdout(least=75 + sum(len(space) + 2 for space in found.spaces))
        wide.print(report.report(found, planned.notes), soft_wrap=True)
