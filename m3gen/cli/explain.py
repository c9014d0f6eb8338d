"""`m3gen explain`: what the runtime would run, and every step of the ladder on the way there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from m3gen.cli.options import Arch, Dtypes, Json, Ranks, Rows

if TYPE_CHECKING:
    from m3gen.runtime.kernels import KernelSet
    from m3gen.runtime.ladder import Trace
    from m3gen.spec import Problem

ANSWERED, REFUSED = 0, 1


def explain(
    arch: Arch,
    op: Annotated[list[str] | None, typer.Option("--op", metavar="OP", help="Operations; sparse_decode.")] = None,
    rows: Rows = None,
    tp: Ranks = None,
    kv: Dtypes = None,
    kv_scale: Annotated[
        str,
        typer.Option(
            "--kv-scale", metavar="MODE", help="Scales of fp8 caches: auto, none, scalar, per_token_head."
        ),
    ] = "auto",
    context: Annotated[int, typer.Option("--context", metavar="TOKENS", min=1, help="Tokens of context.")] = 8192,
    query_len: Annotated[
        int, typer.Option("--query-len", metavar="N", min=1, help="Query tokens of a request.")
    ] = 1,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="Device; the architecture's usual one by default."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--tables", metavar="DIR", help="As load(tables=...): asked first; modules lie beside it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which configuration runs for a problem, and why: the ladder that m3gen.runtime climbs, step by step.

    override (--tables) > user > site > release > a demoted row of one of these > a table's fallback. A row is demoted
    when it is of another compiler than the one that is here, or was checked as an earlier text of its template.

    \b
    Exit status:
      0    every problem is answered
      1    some problem gets no kernel
      2    bad input or environment
    """
    from m3gen import runtime
    from m3gen.cli import output
    from m3gen.cli.problems import build, find_device

    found = find_device(arch, device)
    problems = build(
        found,
        op=op,
        tp=tp,
        kv=kv,
        kv_scale=kv_scale,
        rows=rows,
        context=[str(context)],
        query_len=query_len,
    )
    kernels = runtime.load(found.arch, tables=tables)
    traces = [
        (problem, kernels[problem.op].trace(problem) if problem.op in kernels else None) for problem in problems
    ]
    if as_json:
        objects = [_object(problem, trace) for problem, trace in traces]
        output.print_object(
            "explain", {"compiler": kernels.compiler, "faults": kernels.faults, "problems": objects}
        )
    else:
        for problem, trace in traces:
            print("\n".join(_lines(problem, trace, kernels)))
    every = all(trace is not None and trace.answer is not None for _, trace in traces)
    raise typer.Exit(ANSWERED if every else REFUSED)


def _lines(problem: Problem, trace: Trace | None, kernels: KernelSet) -> list[str]:
    from m3gen.report.tables import row_line

    lines = [f"{row_line(problem)}, {problem.compute_units} compute units, {kernels.compiler}"]
    lines += [f"  ! {fault}" for fault in kernels.faults]
    if trace is None:
        return [
            *lines,
            f"  no table of {problem.op}: m3gen tune --arch {problem.arch} --op {problem.op} makes one",
        ]
    for step in trace.steps:
        lines.append(f"  {'>' if step.taken else '-'} {step.rung:<9}  {step.words}")
        lines.append(f"    {'':<9}  {step.table}")
    if (answer := trace.answer) is None:
        return [*lines, f"  nothing runs: m3gen tune --arch {problem.arch} --op {problem.op} makes a row"]
    settings = ", ".join(f"{name}={value}" for name, value in answer.shelf.table.configs[answer.config].items())
    return [*lines, f"  runs {answer.module.__name__}, config {answer.config}: {settings}"]


def _object(problem: Problem, trace: Trace | None) -> dict[str, Any]:
    steps = [] if trace is None else trace.steps
    answer = None if trace is None else trace.answer
    told = answer and {
        "rung": str(answer.rung),
        "table": answer.shelf.place,
        "config": dict(answer.shelf.table.configs[answer.config]),
        "row": answer.point and {"rows": answer.point.problem.rows, "context": answer.point.problem.context},
        "module": answer.module.__name__,
    }
    names = ("table", "words", "taken")
    return {
        "problem": problem.to_dict(),
        "steps": [{"rung": str(s.rung), **{name: getattr(s, name) for name in names}} for s in steps],
        "answer": told,
    }
