"""The options that several verbs share, and how their values are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from m3gen.errors import UserError

_LIST = "Repeat it or separate values by commas."

Arch = Annotated[str, typer.Option("--arch", metavar="ARCH", help="Architecture, such as gfx942 or sm_90.")]
AnyArch = Annotated[
    str | None, typer.Option("--arch", metavar="ARCH", help="Only this architecture.", show_default=False)
]
Ops = Annotated[list[str] | None, typer.Option("--op", metavar="OP", help=f"Operations by name, or all. {_LIST}")]
Ranks = Annotated[
    list[str] | None,
    typer.Option("--tp", metavar="N", help=f"Tensor-parallel ranks, 4 by default. {_LIST}"),
]
Dtypes = Annotated[
    list[str] | None,
    typer.Option(
        "--kv",
        metavar="DTYPE",
        help=f"Types of the KV cache: bf16, fp8 (the architecture's own dialect). Both by default. {_LIST}",
    ),
]
Rows = Annotated[
    list[str] | None,
    typer.Option(
        "--rows",
        metavar="N",
        help=f"Query rows in a batch, rounded up to a bucket; 1,16,64,256 by default. {_LIST}",
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Database, such as sqlite:///tuning.db. Default: $M3GEN_STORE, else a file of the user's own.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else there.")]


Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="Worker processes. Default: the number of CPUs."),
]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where workers run: local (this machine) or ray (a cluster, by default on all its CPUs).",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="Head of the Ray cluster, or auto. Default: a cluster of this machine alone, for this run.",
    ),
]


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split(values: Iterable[str] | None) -> tuple[str, ...]:
    """ "1,16" and "--rows 1 --rows 16" alike: each value once, in the order given."""
    parts = (part.strip() for value in values or () for part in value.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def integers(option: str, values: Sequence[str] | None, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """`split` as positive integers; `UserError` naming the option for anything else."""
    if values is None:
        return default
    parts = split(values)
    if not parts or any(not part.isascii() or not part.isdecimal() or int(part) < 1 for part in parts):
        raise UserError(f"{option} {','.join(values)!r}: expected positive integers, such as {option} 1,16")
    return tuple(dict.fromkeys(int(part) for part in parts))
