"""The ladder: a pure function of tables, compiler and load; what it answers and every step on the way there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from m3gen.errors import UserError
from m3gen.runtime.here import Here
from m3gen.runtime.modules import Missing
from m3gen.runtime.selection import Build, Launcher, NoKernel, Rung, Selection
from m3gen.runtime.shelf import NoRow, Shelf
from m3gen.spec import ROW_BUCKETS, Problem, bucket
from m3gen.tables.load import Point, Values
from m3gen.tables.validated import Kept, Verdict

Adapt = Callable[[Launcher], Launcher]


@dataclass(frozen=True, slots=True)
class Step:
    """One table asked on one rung, and its answer in words. `taken`: it is what runs."""

    rung: Rung
    table: str
    words: str
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What runs: a config of a table, in its module. `point` is None for a fallback."""

    rung: Rung
    shelf: Shelf
    config: str
    point: Point | None
    module: ModuleType


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps in the order in which they were taken; `answer` is None when no table has one."""

    steps: tuple[Step, ...]
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class _Demoted:
    """A row that serves the load and may no longer hold."""

    answer: Answer
    verdict: Verdict | None

    @property
    def order(self) -> int:
        """Those that were compiled here, and came out alike, before those that nobody has tried."""
        kept = None if self.verdict is None else self.verdict.kept
        return (Kept.SAME, Kept.CHANGED, None).index(kept)


def walk(shelves: Sequence[Shelf], problem: Problem, rows: int, context: int, here: Here) -> Trace:
    """Ask every table for a row, in order; then the rows that were put off; then the fallbacks.

    `problem.rows` and `problem.context` are not looked at.
    """
    steps: list[Step] = []
    demoted: list[_Demoted] = []
    for shelf in shelves:
        try:
            point = shelf.point(problem, rows, context)
            module = shelf.kernel(problem, point.config)
        except (NoRow, Missing) as error:
            steps.append(Step(shelf.rung, shelf.place, str(error)))
            continue
        source = shelf.source(problem, point.config)
        if not (doubt := here.doubt(point, source)):
            steps.append(Step(shelf.rung, shelf.place, _served(point), taken=True))
            return Trace(tuple(steps), Answer(shelf.rung, shelf, point.config, point, module))
        verdict = here.verdict(point, source)
        words = f"{_served(point)}: demoted, {doubt}"
        if verdict is not None and verdict.kept is Kept.FAILS:
            steps.append(Step(shelf.rung, shelf.place, f"{words}; {_validated(verdict)}"))
            continue
        steps.append(Step(shelf.rung, shelf.place, words))
        demoted.append(_Demoted(Answer(Rung.DEMOTED, shelf, point.config, point, module), verdict))
    if demoted:
        first = min(demoted, key=lambda one: one.order)
        words = f"the row of the {first.answer.shelf.rung} table all the same: {_validated(first.verdict)}"
        steps.append(Step(Rung.DEMOTED, first.answer.shelf.place, words, taken=True))
        return Trace(tuple(steps), first.answer)
    for shelf in shelves:
        if (fallback := shelf.fallback(problem)) is None:
            continue
        try:
            module = shelf.kernel(problem, fallback.config)
        except Missing as error:
            steps.append(Step(Rung.HEURISTIC, shelf.place, f"fallback of the {shelf.rung} table: {error}"))
            continue
        words = f"the fallback of the {shelf.rung} table for this variant"
        steps.append(Step(Rung.HEURISTIC, shelf.place, words, taken=True))
        return Trace(tuple(steps), Answer(Rung.HEURISTIC, shelf, fallback.config, None, module))
    return Trace(tuple(steps), None)


def select(
    shelves: Sequence[Shelf],
    problem: Problem,
    rows: int,
    context: int,
    adapt: Adapt,
    here: Here,
    notes: Sequence[str] = (),
    build: Build | None = None,
) -> Selection:
    """The answer of `walk` as something that launches.

    `adapt` makes a module's launcher run on what is there; `notes` are reasons known beforehand; `build` is
    asked last. Raises `NoKernel`.
    """
    trace = walk(shelves, problem, rows, context, here)
    steps = [*notes, *(reason(step) for step in trace.steps)]
    if (answer := trace.answer) is not None:
        config = answer.shelf.table.configs[answer.config]
        return _selection(answer.module, problem.op, config, answer.rung, answer.point, steps, adapt)
    if build is not None:
        try:
            module, built = build(replace(problem, rows=bucket(min(rows, ROW_BUCKETS[-1]), ROW_BUCKETS)))
        except (UserError, ValueError) as error:
            steps.append(f"cannot be built: {error}")
        else:
            steps.append("built on the spot with the field's default, neither tuned nor verified")
            return _selection(module, problem.op, built, Rung.BUILT, None, steps, adapt)
    op, arch = problem.op, problem.arch
    raise NoKernel(
        f"no kernel for {op} on {arch} with {rows} rows and a context of {context}: "
        f"{'; '.join(steps) or 'no tables'}; tune it with `m3gen tune --arch {arch} --op {op}`"
    )


def reason(step: Step) -> str:
    """A step as part of a selection's reason."""
    return step.words if step.rung in (Rung.DEMOTED, Rung.HEURISTIC) else f"{step.rung} table: {step.words}"


def _served(point: Point) -> str:
    beyond = " and above" if "context" in point.open_ended else ""
    return (
        f"row for {point.problem.rows} rows, context {point.problem.context}{beyond}, "
        f"{point.us:g} us {point.status} by {point.judge}"
    )


def _validated(verdict: Verdict | None) -> str:
    if verdict is None:
        return "nobody has compiled it here (m3gen tables validate does)"
    found = {
        Kept.SAME: "it compiles here with the same resources",
        Kept.CHANGED: "it compiles here with other resources",
        Kept.FAILS: "it is of no use here",
    }[verdict.kept]
    return f"{found} (validated {verdict.date}{f': {verdict.why}' if verdict.why else ''})"


def _selection(
    module: ModuleType,
    op: str,
    config: Values,
    rung: Rung,
    point: Point | None,
    steps: Sequence[str],
    adapt: Adapt,
) -> Selection:
    return Selection(
        launcher=adapt(getattr(module, op)),
        workspace=module.workspace,
        config=config,
        rung=rung,
        point=point,
        reason="; ".join(steps),
        module=module.__name__,
    )
