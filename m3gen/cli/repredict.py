"""`m3gen repredict`: stored candidates judged by the predictor of today."""

from __future__ import annotations

from dataclasses import asdict

from m3gen.cli.options import AnyArch, Json, Ops, StoreUrl


def repredict(arch: AnyArch = None, op: Ops = None, store: StoreUrl = None, as_json: Json = False) -> None:
    """Predict every stored candidate anew after the predictor has changed.

    Nothing is compiled and nothing is run: the store has the facts of the machine code and what running it showed. Rows
    of earlier versions stay. A tune of the same problems goes on from there and verifies its winners.
    """
    from m3gen import paths, targets
    from m3gen.cli import output, work
    from m3gen.cli.problems import find_ops
    from m3gen.store import Store

    name = arch and targets.architecture(arch).name
    wanted = {one.name for one in find_ops(op or ["all"])}
    tell = output.stderr()
    with Store.open(store or paths.store_url()) as opened:
        problems = [problem for problem in opened.problems(arch=name) if problem.op in wanted]
        found = work.repredict(opened, problems, lambda n: tell.print(f"{n} predicted") if n % 100 == 0 else None)
        where = str(opened.location)
    if as_json:
        output.print_object("repredict", {"store": where, **asdict(found)})
        return
    output.stdout().print(
        f"{found.new} predicted anew, {found.known} known to this version, {found.lacking} not: their launches or "
        f"traces are not in the store\nstore {where}",
        soft_wrap=True,
    )
