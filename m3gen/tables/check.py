"""What this compiler makes of the rows of a table, beside what the compiler of their time made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from m3gen import ops
from m3gen.codegen.generate import legal_config
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.spec import Problem
from m3gen.tables.findings import launch_code
from m3gen.tables.table import LaunchCode, Point, Table
from m3gen.tables.validated import Kept, Verdict, verdict_key

_RESOURCES = ("registers", "vector_spills", "scalar_spills", "scratch_bytes", "shared_bytes", "workgroups_per_cu")


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows of one table that one compile answers: they differ in their load alone. `request` is None when the config
    is not of the op's space, and `reason` says why."""

    table: Table
    points: tuple[Point, ...]
    request: CompileRequest | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """What became of one row. `why` names what changed or failed, `stale` says that its template makes another text
    now, `other_code` that the machine code differs (None where the table has not kept it)."""

    arch: str
    op: str
    point: Point
    kept: Kept
    why: str = ""
    stale: bool = False
    other_code: bool | None = None
    source_sha: str = ""


def asked(table: Table) -> list[Asked]:
    """What to compile for the rows of a table, each kernel once."""
    op = ops.get(table.op)
    groups: dict[tuple[Problem, str], list[Point]] = {}
    for point in table.points:
        groups.setdefault((point.problem.with_load(1, 1), point.config), []).append(point)
    found = []
    for (_, config), points in groups.items():
        try:
            legal = [legal_config(op, point.problem, table.configs[config]) for point in points]
        except ValueError as error:
            found.append(Asked(table, tuple(points), None, f"its config is not of the op's space: {error}"))
            continue
        request = CompileRequest(op.name, tuple(point.problem for point in points), legal[0])
        found.append(Asked(table, tuple(points), request))
    return found


def answered(one: Asked, result: CompileResult | None) -> list[RowCheck]:
    """A verdict on each row that was asked about; `result` is None for what could not be asked."""
    if result is None or not result.ok:
        reason = one.reason if result is None else f"{result.status}: {result.reason}"
        return [_row(one.table, point, Kept.FAILS, reason) for point in one.points]
    checks = []
    for point, keys in zip(one.points, result.keys, strict=True):
        now = [result.facts[key] for key in keys]
        kept, why = compare(point, one.table.code, now)
        before = [one.table.code[name].code_sha for name in point.launches]
        checks.append(
            RowCheck(
                one.table.arch,
                one.table.op,
                point,
                kept,
                why,
                stale=result.source_sha != point.source_sha,
                other_code=[facts.code_sha for facts in now] != before if before else None,
                source_sha=result.source_sha,
            )
        )
    return checks


def compare(point: Point, code: Mapping[str, LaunchCode], now: Sequence[KernelFacts]) -> tuple[Kept, str]:
    """A row's launches as they were kept beside what the compiler makes of them now.

    FAILS when one spills, or takes scratch, more than it did: what was not kept is taken to have done neither.
    """
    made = [launch_code(facts) for facts in now]
    before = [code[name] for name in point.launches]
    if not before:
        return _compare_registers(point, made)
    if [one.kernel for one in before] != [one.kernel for one in made]:
        names = (" + ".join(one.kernel for one in group) for group in (before, made))
        return Kept.CHANGED, f"launches {' -> '.join(names)}"
    changes = [
        f"{new.kernel} {name} {getattr(old, name)} -> {getattr(new, name)}"
        for old, new in zip(before, made, strict=True)
        for name in _RESOURCES
        if getattr(old, name) != getattr(new, name)
    ]
    worse = any(
        new.vector_spills > old.vector_spills or new.scratch_bytes > old.scratch_bytes
        for old, new in zip(before, made, strict=True)
    )
    return (Kept.FAILS if worse else Kept.CHANGED if changes else Kept.SAME), ", ".join(changes)


def verdicts(checks: Iterable[RowCheck], compiler: str, date: str) -> dict[str, Verdict]:
    """What the runtime is to know of rows under a compiler, by `verdict_key`; the worst counts of rows with one key."""
    found: dict[str, Verdict] = {}
    order = (Kept.SAME, Kept.CHANGED, Kept.FAILS)
    for check in checks:
        source = check.source_sha or check.point.source_sha
        key = verdict_key(check.point.problem, check.point.config, source, compiler)
        if key not in found or order.index(check.kept) > order.index(found[key].kept):
            found[key] = Verdict(check.kept, _printable(check.why), date)
    return found


def _compare_registers(point: Point, made: Sequence[LaunchCode]) -> tuple[Kept, str]:
    """Of rows that have kept nothing but the registers of the launch that takes the most."""
    if spilling := [one for one in made if one.vector_spills or one.scratch_bytes]:
        one = spilling[0]
        return (
            Kept.FAILS,
            f"{one.kernel} spills {one.vector_spills} registers, {one.scratch_bytes} bytes of scratch",
        )
    most = max((one.registers for one in made), default=0)
    if most != point.registers:
        return Kept.CHANGED, f"registers {point.registers} -> {most}"
    return Kept.SAME, ""


def _row(table: Table, point: Point, kept: Kept, why: str) -> RowCheck:
    return RowCheck(table.arch, table.op, point, kept, why)


def _printable(text: str) -> str:
    """In the characters that a file of verdicts may hold."""
    allowed = " _.,:;=+/@()'[]>-"
    return "".join(c if c.isascii() and (c.isalnum() or c in allowed) else "_" for c in text)[:500]
