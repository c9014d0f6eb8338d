"""`load`: the kernels of one architecture, by op; everything that can be decided before a launch is."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from m3gen.compiler.fingerprint import fingerprint
from m3gen.errors import UserError
from m3gen.runtime import backend
from m3gen.runtime.backend import Place
from m3gen.runtime.bundle import install
from m3gen.runtime.dispatch import Dispatch
from m3gen.runtime.here import Here
from m3gen.runtime.ladder import Adapt, Trace, select, walk
from m3gen.runtime.selection import Build, NoKernel, Rung, Selection
from m3gen.runtime.shelf import Shelf
from m3gen.runtime.sources import Source, sources, verdict_files
from m3gen.spec import Problem
from m3gen.tables.load import load as load_table
from m3gen.tables.manifest import listed_shas
from m3gen.tables.validated import Verdict, load_verdicts
from m3gen.targets import architecture


class OpKernels:
    """The kernels of one op. A selection is a pure function of the tables and the problem: ranks agree.

    `faults` are the tables of this op that could not be used, in words.
    """

    def __init__(
        self,
        op: str,
        arch: str,
        shelves: Sequence[Shelf],
        faults: Sequence[str],
        adapt: Adapt,
        here: Here,
        build: Build | None = None,
    ) -> None:
        self.op = op
        self.arch = arch
        self.faults = tuple(faults)
        self._shelves = tuple(shelves)
        self._adapt = adapt
        self._here = here
        self._build = build
        self._selected: dict[Problem, Selection] = {}

    def select(self, problem: Problem) -> Selection:
        """The kernel for a problem and the reason; `NoKernel` naming what the nearest row differs in."""
        if (known := self._selected.get(problem)) is None:
            known = self._selected[problem] = self._select(problem, problem.rows)
        return known

    def trace(self, problem: Problem) -> Trace:
        """Every step of the ladder for a problem, and its answer: what `select` decides by."""
        self._require_ours(problem)
        return walk(self._shelves, problem, problem.rows, problem.context, self._here)

    def bind(self, problem: Problem, max_rows: int) -> Dispatch:
        """Choose for every batch of up to `max_rows` rows of a problem, whose own `rows` is not looked at;
        `problem.context` is the longest that will come. Raises `NoKernel` with every reason there is.
        """
        if max_rows < 1:
            raise ValueError(f"max_rows={max_rows}: expected 1 or more")
        edges = {edge for shelf in self._shelves for edge in shelf.edges(problem) if edge < max_rows}
        chosen: list[Selection] = []
        refused: dict[str, None] = {}
        for edge in sorted({*edges, max_rows}):
            try:
                chosen += [self._select(problem, edge)] * (edge + 1 - len(chosen))
            except NoKernel as error:
                refused[str(error)] = None
        if refused:
            raise NoKernel("\n".join(refused))
        return Dispatch(chosen)

    def __call__(self, problem: Problem, **arguments: Any) -> None:
        """Select, allocate the workspace, and launch: for trying out; to serve, use `bind`.

        `ValueError` when the tensors hold more rows than `problem` says.
        """
        selection = self.select(problem)
        first = next(iter(inspect.signature(selection.launcher).parameters))  # has one entry a query row
        if first not in arguments:
            raise TypeError(f"{self.op} needs the argument {first!r}")
        if (rows := arguments[first].shape[0]) > problem.rows:
            raise ValueError(f"{first} has {rows} rows, the problem {problem.rows}: use problem.with_load({rows})")
        made = selection.buffers(problem.rows, problem.kv_heads, problem.group_size, arguments[first].device)
        selection.launcher(**{**made, **arguments})

    def _select(self, problem: Problem, rows: int) -> Selection:
        self._require_ours(problem)
        return select(
            *(self._shelves, problem, rows, problem.context),
            *(self._adapt, self._here, self.faults, self._build),
        )

    def _require_ours(self, problem: Problem) -> None:
        if (problem.op, problem.arch) != (self.op, self.arch):
            raise NoKernel(
                f"the problem is {problem.op} on {problem.arch}, the kernels are {self.op} on {self.arch}: "
                f"ask load({problem.arch!r})[{problem.op!r}]"
            )


class KernelSet(Mapping[str, OpKernels]):
    """The kernels of one architecture: `kernels["sparse_decode"]` or `kernels.sparse_decode`.

    With a builder every op is there; iterating names those that have tables. `place` says what runs the launches,
    `compiler` is the fingerprint that rows are held against.
    `faults` are the tables that could not be used, in words.
    """

    def __init__(
        self,
        arch: str,
        by_op: Mapping[str, OpKernels],
        place: Place,
        compiler: str,
        faults: Sequence[str],
        without_tables: Callable[[str], OpKernels] | None = None,
    ) -> None:
        self.arch = arch
        self.place = place
        self.compiler = compiler
        self.faults = tuple(faults)
        self._by_op = dict(by_op)
        self._without_tables = without_tables

    def __getitem__(self, op: str) -> OpKernels:
        try:
            return self._by_op[op]
        except KeyError:
            if self._without_tables is not None:
                return self._without_tables(op)
            raise KeyError(f"no tables of {op} on {self.arch}: there are {', '.join(self) or 'none'}") from None

    def __getattr__(self, op: str) -> OpKernels:
        if op.startswith("_"):
            raise AttributeError(op)
        try:
            return self[op]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_op)

    def __len__(self) -> int:
        return len(self._by_op)


def load(
    arch: str,
    *,
    tables: Path | str | None = None,
    generated: Path | str | None = None,
    build: Build | None = None,
    adapt: Adapt | None = None,
    bundle: Path | str | None = None,
) -> KernelSet:
    """The kernels of an architecture from the tables that are there; nothing is written.

    `tables` names a folder of tables (`<arch>/<op>.json`) that goes before the user's and the release's, and
    `generated` its modules, by default the folder `generated` beside it. A table of the user or the release
    that cannot be used gives a warning and the next rung answers; one that was named here raises. `build` is
    asked for what no table has: `m3gen.codegen.build`, which needs more than torch and Triton. `adapt` takes each
    launcher and returns what is called in its place: `m3gen.emulator.Emulator.emulated`, for launches that shall run
    neither on the GPU that is here nor in the interpreter. `bundle` is a file of `m3gen bundle`: where the compiler and
    the GPU are those it was made for, its machine code runs and nothing is compiled; else a warning says why not.

    Raises `UserError` for an unknown architecture, a named folder that is not there, and when no table is and
    nothing builds.
    """
    arch = architecture(arch).name
    shelves: dict[str, list[Shelf]] = {}
    faults: dict[str, list[str]] = {}
    asked = list(sources(arch, _path(tables), _path(generated)))
    for source in asked:
        paths = sorted((source.tables / arch).glob("*.json"))
        if source.rung is Rung.OVERRIDE and not paths:
            raise UserError(f"no table for {arch} in {source.tables}: name another folder, or none")
        # The release's manifest comes with the modules that run: whoever can write it can write those.
        listed = (listed_shas(source.tables) or {}) if source.rung is Rung.RELEASE else {}
        for path in paths:
            try:
                shelves.setdefault(path.stem, []).append(_shelf(source, path, listed))
            except UserError as error:
                if source.rung is Rung.OVERRIDE:
                    raise
                warnings.warn(f"{error}; the next table answers", RuntimeWarning, stacklevel=2)
                faults.setdefault(path.stem, []).append(str(error))
    if build is None and not any(shelves.values()):
        raise UserError(
            f"no table for {arch} in {', '.join(str(s.tables) for s in asked)}: "
            f"make one with `m3gen tune --arch {arch}`"
        )
    place, adapted = _place(arch, adapt)
    here, unread = _here(arch)
    if bundle is not None:
        for reason in install(Path(bundle), arch=backend.live_architecture(), compiler=here.compiler).reasons:
            warnings.warn(f"{reason}; kernels are compiled", RuntimeWarning, stacklevel=2)
            unread.append(reason)

    def kernels(op: str) -> OpKernels:
        return OpKernels(op, arch, shelves.get(op, ()), faults.get(op, ()), adapted, here, build)

    by_op = {op: kernels(op) for op, found in sorted(shelves.items()) if found}
    all_faults = [*unread, *(fault for found in faults.values() for fault in found)]
    return KernelSet(arch, by_op, place, here.compiler, all_faults, None if build is None else kernels)


def _place(arch: str, adapt: Adapt | None) -> tuple[Place, Adapt]:
    if adapt is not None:
        return Place.CALLER, adapt
    if backend.live_architecture() == arch:
        return Place.GPU, backend.compiled
    return Place.INTERPRETER, backend.interpreted


def _here(arch: str) -> tuple[Here, list[str]]:
    """The compiler and the verdicts under it, and the files of verdicts that could not be used."""
    verdicts: dict[str, Verdict] = {}
    faults = []
    for path in verdict_files(arch):
        try:
            verdicts = load_verdicts(path) | verdicts
        except UserError as error:
            warnings.warn(f"{error}; rows are taken as not validated", RuntimeWarning, stacklevel=3)
            faults.append(str(error))
    return Here(fingerprint(), verdicts), faults


def _shelf(source: Source, path: Path, listed: Mapping[str, str]) -> Shelf:
    table = load_table(path, known_sha=listed.get(f"{path.parent.name}/{path.name}"))
    return Shelf(source.rung, table, source.modules, str(path))


def _path(folder: Path | str | None) -> Path | None:
    return None if folder is None else Path(folder)
