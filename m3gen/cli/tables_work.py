"""What the commands on tables have done by the rooms below."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from m3gen.errors import UserError
from m3gen.spec import Problem, Status

if TYPE_CHECKING:
    from rich.console import Console

    from m3gen.compiler.request import CompileRequest, CompileResult
    from m3gen.report.coverage import Cell
    from m3gen.store import Store
    from m3gen.tables.check import RowCheck

COMPILE_DEADLINE_S = 600.0
_EVERY = 50  # kernels between two lines of progress


@dataclass(frozen=True, slots=True)
class Exported:
    """The files written, and the problems of the store that have no verified winner."""

    files: tuple[Path, ...]
    without: tuple[Problem, ...]


def export_stored(
    url: str, arch: str | None, ops: Collection[str] | None, target: Path, *, t4: bool, regret: float
) -> Exported:
    """The store's winners into tables, consolidated within `regret`, or all its evaluations into T4 files. `UserError`
    when it has none."""
    from m3gen.search.consolidation import stored_winners
    from m3gen.store import Store
    from m3gen.tables.export import export
    from m3gen.tables.findings import findings

    with Store.open(url, read_only=True) as store:
        problems = [one for one in store.problems(arch=arch) if ops is None or one.op in ops]
        if not problems:
            raise UserError(f"{store.location} has no such problem: run m3gen tune first, or name another --store")
        if t4:
            return Exported(tuple(_t4(store, problem, target) for problem in problems), ())
        winners = stored_winners(store, arch=arch, names=ops, regret=regret)
        files = export(findings(store, winners), target)
    won = {winner.problem for winner in winners}
    return Exported(tuple(files), tuple(problem for problem in problems if problem not in won))


def _t4(store: Store, problem: Problem, target: Path) -> Path:
    from m3gen.tables import t4
    from m3gen.tables.files import replace_text

    path = target / problem.arch / f"{problem.op}_{problem.sha[:12]}.t4.json"
    replace_text(path, t4.dumps(store.evaluations(problem)))
    return path


def checked(
    folder: Path, arch: str | None, ops: Collection[str] | None, jobs: int, progress: Console
) -> list[RowCheck]:
    """Every row of a folder's tables through the compiler that is here, in the order of the rows."""
    from m3gen.tables import check
    from m3gen.tables.load import load

    paths = [path for path in sorted(folder.glob("*/*.json")) if arch is None or path.parent.name == arch]
    tables = [load(path) for path in paths if ops is None or path.stem in ops]
    if not tables:
        raise UserError(f"there is no such table in {folder}: name another folder with --tables")
    asked = [one for table in tables for one in check.asked(table)]
    results = compiled([one.request for one in asked if one.request is not None], jobs, progress)
    found = iter(results)
    rows = [row for one in asked for row in check.answered(one, None if one.request is None else next(found))]
    return sorted(rows, key=lambda row: (row.arch, row.op, row.point.problem))


def compiled(requests: Sequence[CompileRequest], jobs: int, progress: Console) -> list[CompileResult]:
    """Each through the compiler, or from the cache, in the order given."""
    from m3gen.compiler.pool import COMPILE_CANDIDATE, WorkerPool
    from m3gen.compiler.request import CompileResult

    found: dict[int, CompileResult] = {}
    with WorkerPool(COMPILE_CANDIDATE, jobs=jobs, deadline_s=COMPILE_DEADLINE_S) as pool:
        tickets = [pool.submit(request) for request in requests]
        while len(found) < len(tickets):
            for one in pool.poll(1.0):
                died = CompileResult(status=one.status, reason=one.reason)
                found[one.ticket] = one.value if one.status is Status.OK else died
                if len(found) % _EVERY == 0:
                    progress.print(f"{len(found)} of {len(tickets)} compiled")
    return [found[ticket] for ticket in tickets]


def keep_verdicts(rows: Sequence[RowCheck], compiler: str, folder: Path) -> list[Path]:
    """What the runtime is to know, added to the verdicts that are there; the files that changed."""
    from m3gen.tables import check
    from m3gen.tables.files import replace_text, writing
    from m3gen.tables.validated import dumps_verdicts, load_verdicts

    today = datetime.now(UTC).date().isoformat()
    written = []
    with writing(folder):
        for arch in sorted({row.arch for row in rows}):
            path = folder / f"{arch}.json"
            verdicts = check.verdicts((row for row in rows if row.arch == arch), compiler, today)
            if replace_text(path, dumps_verdicts(load_verdicts(path) | verdicts)):
                written.append(path)
    return written


def coverage(arch: str, ops: Sequence[str] | None, folder: Path | None, contexts: Sequence[int]) -> list[Cell]:
    """Every load that MiniMax-M3 asks of an architecture, and the rung that answers it."""
    from m3gen import ops as known
    from m3gen import runtime
    from m3gen.cli.problems import find_ops
    from m3gen.report import coverage as report
    from m3gen.targets import default_device

    names = known.names() if ops is None else [one.name for one in find_ops(ops)]
    kernels = runtime.load(arch, tables=folder)
    return report.cells(kernels, default_device(arch), names, contexts)
