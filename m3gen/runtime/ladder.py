"""The ladder (override, user, release, heuristic, built, refusal): a pure function of tables and load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

from m3gen.errors import UserError
from m3gen.runtime.modules import Missing
from m3gen.runtime.selection import Build, Launcher, NoKernel, Rung, Selection
from m3gen.runtime.shelf import NoRow, Shelf
from m3gen.spec import ROW_BUCKETS, Problem, bucket
from m3gen.tables.load import Point

Adapt = Callable[[Launcher], Launcher]


def select(
    shelves: Sequence[Shelf],
    problem: Problem,
    rows: int,
    context: int,
    adapt: Adapt,
    notes: Sequence[str] = (),
    build: Build | None = None,
) -> Selection:
    """The first answer for a problem under a load; `problem.rows` and `problem.context` are not looked at.

    `adapt` makes a module's launcher run on what is there; `notes` are reasons known beforehand; `build` is
    asked last. Raises `NoKernel`.
    """
    steps = list(notes)
    for shelf in shelves:
        try:
            point = shelf.point(problem, rows, context)
            module = shelf.kernel(problem, point.config)
        except (NoRow, Missing) as error:
            steps.append(f"{shelf.rung} table: {error}")
            continue
        steps.append(f"{shelf.rung} table: {_served(point)}")
        return _selection(shelf, module, point.config, shelf.rung, point, steps, adapt)
    for shelf in shelves:
        if (fallback := shelf.fallback(problem)) is None:
            continue
        try:
            module = shelf.kernel(problem, fallback.config)
        except Missing as error:
            steps.append(f"fallback of the {shelf.rung} table: {error}")
            continue
        steps.append(f"the fallback of the {shelf.rung} table for this variant")
        return _selection(shelf, module, fallback.config, Rung.HEURISTIC, None, steps, adapt)
    if build is not None:
        try:
            return _built(
                build, replace(problem, rows=bucket(min(rows, ROW_BUCKETS[-1]), ROW_BUCKETS)), steps, adapt
            )
        except (UserError, ValueError) as error:
            steps.append(f"cannot be built: {error}")
    op, arch = problem.op, problem.arch
    raise NoKernel(
        f"no kernel for {op} on {arch} with {rows} rows and a context of {context}: "
        f"{'; '.join(steps) or 'no tables'}; tune it with `m3gen tune --arch {arch} --op {op}`"
    )


def _built(build: Build, problem: Problem, steps: Sequence[str], adapt: Adapt) -> Selection:
    module, config = build(problem)
    return Selection(
        launcher=adapt(getattr(module, problem.op)),
        workspace=module.workspace,
        config=config,
        rung=Rung.BUILT,
        point=None,
        reason="; ".join([*steps, "built on the spot with the field's default, neither tuned nor verified"]),
        module=module.__name__,
    )


def _served(point: Point) -> str:
    beyond = " and above" if "context" in point.open_ended else ""
    return (
        f"row for {point.problem.rows} rows, context {point.problem.context}{beyond}, "
        f"{point.us:g} us {point.status} by {point.judge}"
    )


def _selection(
    shelf: Shelf,
    module: ModuleType,
    config: str,
    rung: Rung,
    point: Point | None,
    steps: Sequence[str],
    adapt: Adapt,
) -> Selection:
    return Selection(
        launcher=adapt(getattr(module, shelf.table.op)),
        workspace=module.workspace,
        config=shelf.table.configs[config],
        rung=rung,
        point=point,
        reason="; ".join(steps),
        module=module.__name__,
    )
