"""`m3gen verify`: the correctness gate again, on stored winners or on a given configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from m3gen.cli.options import Arch, Dtypes, Jobs, Json, Ops, Ranks, Rows, StoreUrl

if TYPE_CHECKING:
    from m3gen.cli.work import Candidate
    from m3gen.evaluate.verification import Verification
    from m3gen.space import Config
    from m3gen.spec import Problem
    from m3gen.targets import Device

PASSED, FAILED = 0, 1
_EXAMPLE = '{"tile_n": 64, "num_warps": 2}'


def verify(
    arch: Arch,
    op: Ops = None,
    tp: Ranks = None,
    kv: Dtypes = None,
    rows: Rows = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="JSON",
            help="Verify this configuration instead of stored winners, on the problems of the options; what "
            "it leaves out is as in the default.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Verify the default configuration of every op.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Verify a part of --all, in two minutes.")] = False,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="GATE",
            help="What runs the kernels: interpreter, or machine-code (AMD): compiled and executed by the emulator.",
        ),
    ] = "interpreter",
    jobs: Jobs = None,
    store: StoreUrl = None,
    as_json: Json = False,
) -> None:
    """Run candidates through the correctness gate again.

    Takes the winners that the store holds for ARCH, of the problems that the other options name, and
    prints every case with its errors and their bounds. A configuration that wins under several loads runs
    once: the cases do not depend on the load. The store keeps the verdicts: a winner for AMD ships only after
    one on machine-code.

    --all takes the default configuration of every op instead, or of those that --op names, on every case
    of the op with two seeds. Of its problems: at TP 4 all dtypes of the cache (bf16, fp16, fp32, fp8) and
    all kinds of scales; at TP 2 (two KV heads), 8 and 16 (groups of 8 and 4 heads) bf16 and fp8 with one
    scale; with these two at TP 4 and 16 also query length 4; one row and 256, 8,192 tokens and 131,072,
    where the default differs. One line a case: the error that comes nearest to its bound, or "exact".

    --quick takes of these TP 4, bf16 and fp8 with one scale, query length 1, one row, 8,192 tokens, with
    one seed; every op, every case.

    \b
    Exit status:
      0    all passed
      1    one failed
      2    bad input or environment, or nothing to verify
      130  interrupted
    """
    from m3gen import paths
    from m3gen.cli import defaults, output, problems, work
    from m3gen.cli.options import cpus
    from m3gen.errors import UserError
    from m3gen.evaluate import place
    from m3gen.report import verdicts
    from m3gen.store import Store

    place.check(on, problems.find_device(arch, None).arch)
    if every or quick:
        if every and quick:
            raise UserError("--quick is a part of --all: give one of them")
        beside = {"--tp": tp, "--kv": kv, "--rows": rows, "--config": config, "--store": store}
        _refuse("--quick" if quick else "--all", beside)
        passed = defaults.verify(arch, op, quick=quick, jobs=jobs or cpus(), on=on, as_json=as_json)
        raise typer.Exit(PASSED if passed else FAILED)
    options = {"op": op, "tp": tp, "kv": kv, "rows": rows}
    url = store or paths.store_url()
    if config is None:
        candidates = _winners(arch, url, **options)
    elif store is not None:
        raise UserError("--config is verified without a store: give --config or --store")
    else:
        candidates = _given(arch, config, **options)
    output.stderr().print(f"{len(candidates)} to verify on {verdicts.place(on)}, up to some minutes each")
    found: list[tuple[Candidate, Verification]] = []
    with nullcontext() if config is not None else Store.open(url) as keeper:
        for candidate, verdict in work.verify(candidates, jobs or cpus(), on=on):
            found.append((candidate, verdict))
            if keeper is not None:
                keeper.commit_verification(candidate.problem, candidate.config, verdict)
            if not as_json:
                bounds = verdicts.bounds_of(candidate.problem)
                output.stdout().print(verdicts.verdict(candidate.problem, candidate.config, verdict, bounds))
    if as_json:
        objects = [verdicts.verification_object(one.problem, one.config, verdict) for one, verdict in found]
        output.print_object("verify", {"verifications": objects})
    raise typer.Exit(PASSED if all(verdict.ok for _, verdict in found) else FAILED)


def _refuse(mode: str, options: Mapping[str, object]) -> None:
    """`UserError` for an option that `mode` does not take."""
    from m3gen.errors import UserError

    if given := [name for name, value in options.items() if value is not None]:
        raise UserError(f"{mode} chooses its own problems: drop {', '.join(given)}; --op narrows it")


def _winners(arch: str, url: str, *, op: Any, tp: Any, kv: Any, rows: Any) -> list[Candidate]:
    """The stored winners that the options name; one that is not given names all."""
    from m3gen.cli import problems, work
    from m3gen.cli.options import integers
    from m3gen.cli.work import Candidate
    from m3gen.errors import UserError
    from m3gen.report.words import tensor_parallel
    from m3gen.store import Store

    device = problems.find_device(arch, None)
    ops = {one.name for one in problems.find_ops(op or ["all"])}
    ranks, loads = integers("--tp", tp), integers("--rows", rows)
    dtypes = None if kv is None else problems.dtypes(device, kv)

    def wanted(problem: Problem) -> bool:
        return (
            problem.op in ops
            and (not ranks or tensor_parallel(problem) in ranks)
            and (dtypes is None or problem.kv_dtype in dtypes)
            and (not loads or problem.rows in loads)
        )

    with Store.open(url, read_only=True) as opened:
        winners = [winner for winner in opened.winners(arch=device.arch) if wanted(winner.problem)]
        where = opened.location
    if not winners:
        raise UserError(
            f"{where} has no such winner on {device.arch}: run m3gen tune --arch {device.arch} first, "
            "or give the candidate with --config"
        )
    return work.distinct(Candidate(winner.problem, winner.config) for winner in winners)


def _given(arch: str, config: str, *, op: Any, tp: Any, kv: Any, rows: Any) -> list[Candidate]:
    """The configuration of `--config` on each problem of the options, loads aside."""
    from m3gen.cli import problems, work
    from m3gen.cli.work import Candidate
    from m3gen.errors import UserError

    values = _parsed(config)
    device = problems.find_device(arch, None)
    built = problems.build(device, op=op, tp=tp, kv=kv, rows=rows)
    if len({problem.op for problem in built}) > 1:
        raise UserError("--config is a configuration of one op: name it with --op")
    return work.distinct(Candidate(problem, _legal(problem, device, values)) for problem in built)


def _parsed(text: str) -> dict[str, Any]:
    from m3gen.errors import UserError

    try:
        values = json.loads(text)
    except ValueError as error:
        raise UserError(f"--config is no JSON ({error}): expected an object such as {_EXAMPLE}") from None
    if not isinstance(values, dict) or any(not isinstance(value, int | str) for value in values.values()):
        raise UserError(f"--config {text}: expected an object of names and plain values, such as {_EXAMPLE}")
    return values


def _legal(problem: Problem, device: Device, values: dict[str, Any]) -> Config:
    """The values, completed by the problem's default, as a config that no rule refuses."""
    from m3gen import ops
    from m3gen.errors import UserError
    from m3gen.report.words import problem_line

    op = ops.get(problem.op)
    space, default = op.space(problem, device), op.default(problem, device)
    try:
        config = space.canonical({**{one.name: one.default for one in space.parameters}, **default, **values})
    except ValueError as error:
        raise UserError(f"--config on {problem_line(problem)}: {error}") from None
    if config != default and (broken := space.violations(config)):
        raise UserError(
            f"--config on {problem_line(problem)}: refused by rule {broken[0].code!r}: {broken[0].reason}"
        )
    return config
