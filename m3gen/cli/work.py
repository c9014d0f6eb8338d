"""What the verbs have done by the rooms below, a function each: the one place where tests put fakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from m3gen import ops
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.errors import UserError
from m3gen.evaluate.gate import SEEDS, GateRequest
from m3gen.evaluate.place import INTERPRETER, MACHINE_CODE, WORKER_ENVIRONMENT
from m3gen.evaluate.verification import Verification
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.targets import Device

if TYPE_CHECKING:
    from m3gen.compiler.pool import Done
    from m3gen.emulator.mnemonics import Used
    from m3gen.peers.worker import PeerRequest, PeerResult
    from m3gen.search.budget import Budget
    from m3gen.search.executor import Executor
    from m3gen.search.progress import Listener
    from m3gen.search.repredict import Repredicted
    from m3gen.search.result import WinnerRow
    from m3gen.search.session import Session
    from m3gen.store import Store

VERIFY_DEADLINE_S = 600.0
COMPILE_DEADLINE_S = 600.0
JUDGE = "m3gen.evaluate.candidate:judge_candidate"
ABLATE = "m3gen.evaluate.candidate:ablate_candidate"


@dataclass(frozen=True, slots=True)
class Exported:
    """Files that were written, or found as they should be."""

    tables: tuple[Path, ...]
    modules: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the gate is asked about."""

    problem: Problem
    config: Config


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """One candidate of each signature and config, the first: the cases of an op do not depend on the load."""
    from m3gen.store import signature

    found: dict[tuple[str, Config], Candidate] = {}
    for one in candidates:
        found.setdefault((signature(one.problem), one.config), one)
    return list(found.values())


def open_executor(name: str, address: str | None, jobs: int | None) -> Executor:
    """Where the workers of a session run: see `m3gen.search.executor.open_executor`."""
    from m3gen.cli.options import cpus
    from m3gen.search import executor

    return executor.open_executor(name, address, jobs=jobs, cpus=cpus())


def open_session(
    store: Store,
    problems: Sequence[Problem],
    device: Device,
    *,
    sampler: str,
    budget: Budget,
    executor: Executor,
    ordered: bool,
    seed: int,
    cache_dir: Path,
    listener: Listener,
) -> Session:
    """A session, not running yet. `UserError` for a sampler there is not."""
    from m3gen import paths
    from m3gen.search.session import Session

    return Session(
        store,
        problems,
        device,
        sampler=sampler,
        budget=budget,
        jobs=executor.slots,
        executor=executor,
        ordered=ordered,
        seed=seed,
        cache_dir=cache_dir,
        tables_dir=paths.tables_dir(),
        listener=listener,
    )


def export(store: Store, rows: Sequence[WinnerRow], tables_dir: Path, modules_dir: Path) -> Exported:
    """The winners of a session into the tables, and modules made from these."""
    from m3gen.cli.stored import winner_of
    from m3gen.codegen.generate import generate as generate_modules
    from m3gen.tables.export import export as export_tables
    from m3gen.tables.findings import findings
    from m3gen.tables.load import load

    tables = export_tables(findings(store, [winner_of(store, row) for row in rows]), tables_dir)
    modules = [module for table in tables for module in generate_modules(load(table), modules_dir)]
    return Exported(tuple(tables), tuple(modules))


def generate(arch: str, tables_dir: Path, modules_dir: Path) -> tuple[Path, ...]:
    """The modules of one architecture from all its tables. `UserError` when there is none."""
    from m3gen.codegen.generate import generate as generate_modules
    from m3gen.tables.load import load

    tables = sorted((tables_dir / arch).glob("*.json"))
    if not tables:
        raise UserError(
            f"there is no table of {arch} in {tables_dir}: run m3gen tune --arch {arch} first, "
            "or name another folder with --tables"
        )
    return tuple(module for table in tables for module in generate_modules(load(table), modules_dir))


def verify(
    candidates: Sequence[Candidate], jobs: int, seeds: tuple[int, ...] = SEEDS, on: str = INTERPRETER
) -> Iterator[tuple[Candidate, Verification]]:
    """Each candidate through the gate: handed out in the order given, answered in the order in which they are
    done."""
    from m3gen.compiler.pool import WorkerPool

    handler = "m3gen.evaluate.gate:verify_request"
    with WorkerPool(handler, jobs=jobs, deadline_s=VERIFY_DEADLINE_S, env=WORKER_ENVIRONMENT) as pool:
        waiting = {
            pool.submit(GateRequest(one.problem.op, one.problem, one.config, seeds, on)): one for one in candidates
        }
        while waiting:
            for done in pool.poll(1.0):
                one = waiting.pop(done.ticket)
                yield one, done.value if done.status is Status.OK else _died(one, on, done)


def _died(candidate: Candidate, on: str, done: Done) -> Verification:
    """The verdict on a candidate whose worker raised, died or was killed."""
    from m3gen.codegen.render import render
    from m3gen.compiler.fingerprint import fingerprint

    problem, config = candidate.problem, candidate.config
    return Verification(
        status=done.status,
        on=on,
        source_sha=render(ops.get(problem.op), problem, config).sha,
        seconds=done.seconds,
        reason=done.reason,
        environment={"compiler": fingerprint()} if on == MACHINE_CODE else {},
    )


def mnemonics(candidates: Sequence[Candidate], jobs: int) -> Iterator[Used]:
    """What instructions each candidate's kernels use, in the order in which they are compiled."""
    from m3gen.compiler.pool import WorkerPool
    from m3gen.emulator.mnemonics import Used

    with WorkerPool("m3gen.emulator.mnemonics:used_by", jobs=jobs, deadline_s=COMPILE_DEADLINE_S) as pool:
        for one in candidates:
            pool.submit(CompileRequest(one.problem.op, (one.problem,), one.config))
        while pool.pending:
            for done in pool.poll(1.0):
                yield done.value if done.status is Status.OK else Used(done.status, done.reason)


def repredict(store: Store, problems: Sequence[Problem], tick: Callable[[int], object]) -> Repredicted:
    """What the predictor of today says of every stored candidate, into the store."""
    from m3gen.search.repredict import repredict as predict_again

    return predict_again(store, problems, tick)


def compiled(
    requests: Sequence[CompileRequest], jobs: int, done: Callable[[int], object], handler: str = JUDGE
) -> list[tuple[CompileRequest, CompileResult]]:
    """Each through the compiler, or from the cache, in the order given; `done` hears how many are known. With `ABLATE`
    simulated without each term, too."""
    from m3gen.compiler.pool import WorkerPool

    found: dict[int, CompileResult] = {}
    with WorkerPool(handler, jobs=jobs, deadline_s=COMPILE_DEADLINE_S) as pool:
        tickets = [pool.submit(request) for request in requests]
        while len(found) < len(tickets):
            for one in pool.poll(1.0):
                died = CompileResult(status=one.status, reason=one.reason)
                found[one.ticket] = one.value if one.status is Status.OK else died
                done(len(found))
    return [(request, found[ticket]) for request, ticket in zip(requests, tickets, strict=True)]


def judged(requests: Sequence[PeerRequest], jobs: int) -> list[PeerResult]:
    """Other people's kernels through the compiler, or from the cache, in the order given."""
    from m3gen.compiler.pool import WorkerPool
    from m3gen.peers.worker import HANDLER, PeerResult

    found: dict[int, PeerResult] = {}
    with WorkerPool(HANDLER, jobs=jobs, deadline_s=COMPILE_DEADLINE_S) as pool:
        tickets = [pool.submit(request) for request in requests]
        while len(found) < len(tickets):
            for one in pool.poll(1.0):
                died = PeerResult(status=one.status, reason=one.reason)
                found[one.ticket] = one.value if one.status is Status.OK else died
    return [found[ticket] for ticket in tickets]
