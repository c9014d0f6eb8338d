"""`m3gen portfolio`: the few configurations that serve all buckets of an op."""

from __future__ import annotations

from typing import Annotated

import typer

from m3gen.cli.options import Arch, Json, StoreUrl


def portfolio(
    arch: Arch,
    op: Annotated[str, typer.Option("--op", metavar="OP", help="The operation.")] = "sparse_decode",
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, max=32, help="Configurations at most.")] = 8,
    store: StoreUrl = None,
    as_json: Json = False,
) -> None:
    """Choose few configurations that serve every problem in the store.

    Of each number of configurations the set with the least worst regret times geometric mean; one more only
    where it serves another problem or earns 2 %. Regret is the time over that of the best configuration known.

    \b
    Exit status:
      0    there is a portfolio
      1    the store knows no time of this op on this architecture
      2    bad input or environment; one line says what to do
    """
    from m3gen import ops, paths, targets
    from m3gen.cli import output
    from m3gen.report import portfolio as pictures
    from m3gen.search.portfolio import portfolio as choose
    from m3gen.search.portfolio import stored_times
    from m3gen.store import Store

    arch, op = targets.architecture(arch).name, ops.get(op).name
    with Store.open(store or paths.store_url(), read_only=True) as opened:
        found = choose(stored_times(opened, arch, op), most)
    if as_json:
        output.print_object("portfolio", {"arch": arch, "op": op, **pictures.portfolio_object(found)})
    else:
        output.stdout().print(pictures.portfolio(found, f"{op} on {arch}"))
    raise typer.Exit(0 if found.members else 1)
