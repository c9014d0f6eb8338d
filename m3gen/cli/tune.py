"""`m3gen tune`: search, verify, export, and say what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from m3gen.cli.options import Address, Arch, Dtypes, ExecutorName, Jobs, Json, Ops, Ranks, Rows, StoreUrl

if TYPE_CHECKING:
    from m3gen.cli.work import Exported
    from m3gen.search.budget import Budget
    from m3gen.search.executor import Executor
    from m3gen.search.result import SessionResult
    from m3gen.spec import Problem
    from m3gen.store import Store
    from m3gen.targets import Device

DEFAULT_BUDGET = "200,4m"
ALL_WON, SOME_WITHOUT, INTERRUPTED = 0, 1, 130


def tune(
    arch: Arch,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="Device; the architecture's usual one by default."),
    ] = None,
    op: Ops = None,
    tp: Ranks = None,
    kv: Dtypes = None,
    kv_scale: Annotated[
        str,
        typer.Option(
            "--kv-scale",
            metavar="MODE",
            help="Scales of fp8 caches: auto (scalar), none, scalar or per_token_head.",
        ),
    ] = "auto",
    rows: Rows = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context",
            metavar="TOKENS",
            help="Tokens of context, rounded up to a bucket; 8192 by default. Repeat it or separate values by commas.",
        ),
    ] = None,
    query_len: Annotated[
        int, typer.Option("--query-len", metavar="N", min=1, help="Query tokens of one request.")
    ] = 1,
    budget: Annotated[
        str,
        typer.Option(
            "--budget",
            metavar="BUDGET",
            help="Evaluations per problem (200), time (90s, 10m, 1h) or both (200,8m); what earlier runs of "
            "the same command spent counts, what the field does under other loads does not.",
        ),
    ] = DEFAULT_BUDGET,
    jobs: Jobs = None,
    executor: ExecutorName = "local",
    address: Address = None,
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered",
            help="Let the sampler hear of candidates in the order in which they were handed out: with the same seed "
            "and --jobs the same search wherever workers run. A slow candidate holds up others.",
        ),
    ] = False,
    sampler: Annotated[
        str,
        typer.Option(
            "--sampler", metavar="NAME", help="What proposes candidates: hybrid, tpe, local, random, exhaustive."
        ),
    ] = "hybrid",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the sampler.")] = 0,
    store: StoreUrl = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write tables to DIR/tuning_db and modules to DIR/generated. Default: the checkout's own, "
            "or the user's data folder.",
        ),
    ] = None,
    no_export: Annotated[bool, typer.Option("--no-export", help="Write neither tables nor modules.")] = False,
    as_json: Json = False,
) -> None:
    """Find the best verified configuration of each problem.

    Tunes sparse_decode unless --op says otherwise (--op all). Needs no GPU. Compiles candidates for ARCH,
    judges them by their machine code, and takes the best through the correctness gate. Every result is in
    the store the moment it is known: a run that was stopped or killed goes on where it was when the same
    command is given again. Ctrl-C stops, keeps everything, and prints what is known.

    \b
    Exit status:
      0    every problem has a verified winner
      1    some problem has none
      2    bad input or environment; one line says what to do
      130  interrupted
    """
    from m3gen.cli import work

    plan = _plan(
        arch=arch,
        device=device,
        problems={
            "op": op,
            "tp": tp,
            "kv": kv,
            "kv_scale": kv_scale,
            "rows": rows,
            "context": context,
            "query_len": query_len,
        },
        budget=budget,
        store=store,
        out=out,
        no_export=no_export,
    )
    with work.open_executor(executor, address, jobs) as workers:
        status = _run(plan, workers, ordered=ordered, sampler=sampler, seed=seed, as_json=as_json)
    raise typer.Exit(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What was asked, found good before any work. `tables_dir` and `modules_dir` are None without export."""

    device: Device
    problems: tuple[Problem, ...]
    budget: Budget
    store_url: str
    cache_dir: Path
    tables_dir: Path | None
    modules_dir: Path | None


def _plan(
    *,
    arch: str,
    device: str | None,
    problems: dict[str, Any],
    budget: str,
    store: str | None,
    out: Path | None,
    no_export: bool,
) -> _Plan:
    from m3gen import paths
    from m3gen.cli import output
    from m3gen.cli.problems import build, find_device
    from m3gen.compiler.cache import FactsCache
    from m3gen.errors import UserError
    from m3gen.search.budget import Budget

    found = find_device(arch, device)
    built = build(found, **problems)
    parsed = Budget.parse(budget)
    if no_export and out is not None:
        raise UserError("--no-export writes nothing to --out: give one of the two")
    cache_dir = paths.cache_dir()
    FactsCache.open(cache_dir / "facts")
    tables = out / "tuning_db" if out else paths.tables_dir()
    modules = out / "generated" if out else paths.generated_dir()
    if not no_export:
        for folder in (tables, modules):
            output.require_writable(folder, "name another folder with --out, or give --no-export")
    return _Plan(
        device=found,
        problems=built,
        budget=parsed,
        store_url=store or paths.store_url(),
        cache_dir=cache_dir,
        tables_dir=None if no_export else tables,
        modules_dir=None if no_export else modules,
    )


def _run(plan: _Plan, workers: Executor, *, ordered: bool, sampler: str, seed: int, as_json: bool) -> int:
    """The exit status."""
    from m3gen.cli import live, output, work
    from m3gen.report import words
    from m3gen.store.aside import open_or_set_aside

    with open_or_set_aside(plan.store_url, output.stderr().print) as store:
        view = live.view(output.stderr(), words.predictor(plan.device))
        session = work.open_session(
            store,
            plan.problems,
            plan.device,
            sampler=sampler,
            budget=plan.budget,
            executor=workers,
            ordered=ordered,
            seed=seed,
            cache_dir=plan.cache_dir,
            listener=view,
        )

        def stop() -> None:
            view.stopping()
            session.stop()

        with view, live.stop_on_interrupt(stop):
            result = session.run()
        exported = _export(plan, result, store)
        _say(plan, result, exported, str(store.location), as_json=as_json)
    if result.ended == "interrupted":
        return INTERRUPTED
    return SOME_WITHOUT if _without_winner(plan, result) else ALL_WON


def _export(plan: _Plan, result: SessionResult, store: Store) -> Exported | None:
    """None when nothing was written: not wanted, no winners, or interrupted before the last verdict."""
    from m3gen.cli import work

    if plan.tables_dir is None or plan.modules_dir is None or not result.rows or result.ended == "interrupted":
        return None
    return work.export(store, result.rows, plan.tables_dir, plan.modules_dir)


def _without_winner(plan: _Plan, result: SessionResult) -> list[Problem]:
    won = {row.problem for row in result.rows}
    return [problem for problem in plan.problems if problem not in won]


def _say(plan: _Plan, result: SessionResult, exported: Exported | None, store: str, *, as_json: bool) -> None:
    from m3gen.cli import output
    from m3gen.report import outcome

    written = exported.tables if exported else (), exported.modules if exported else ()
    without = _without_winner(plan, result)
    if as_json:
        fields = outcome.session_object(result, plan.device, without, store, *written)
        output.print_object("tune", fields)
    else:
        output.stdout().print(outcome.session(result, plan.device, without, store, *written))
