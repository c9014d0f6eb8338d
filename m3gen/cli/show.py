"""`m3gen show`: what a store holds."""

from __future__ import annotations

from typing import Annotated

import typer

from m3gen.cli.options import AnyArch, Json, StoreUrl


def show(
    arch: AnyArch = None,
    op: Annotated[
        str | None, typer.Option("--op", metavar="OP", help="Only this operation.", show_default=False)
    ] = None,
    store: StoreUrl = None,
    as_json: Json = False,
) -> None:
    """Show what the store holds: winners, sessions, failures."""
    from m3gen import ops, paths, targets
    from m3gen.cli import output, stored
    from m3gen.report import history, machine, winners
    from m3gen.search.consolidation import stored_winners
    from m3gen.store import Store

    arch = arch and targets.architecture(arch).name
    op = op and ops.get(op).name
    with Store.open(store or paths.store_url(), read_only=True) as opened:
        named = stored_winners(opened, arch=arch, names=op and [op])  # those that tables name
        rows = [stored.winner_row(opened, winner) for winner in named]
        sessions = opened.sessions(arch=arch, op=op)
        failures = opened.failures(arch=arch, op=op)
        where = str(opened.location)
    if as_json:
        fields = {
            "store": where,
            "winners": [machine.winner(row) for row in rows],
            "sessions": [history.session_object(one) for one in sessions],
            "failures": [history.failure_object(one) for one in failures],
        }
        output.print_object("show", fields)
        return
    console = output.stdout()
    console.print(winners.winners(rows) if rows else "no winners yet")
    console.print(history.sessions(sessions))
    console.print(history.failures(failures))
    console.print(f"store {where}", soft_wrap=True)
