"""What is wrong with tables that can be read: rows that never match, that are hidden, or that no longer hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from m3gen import ops
from m3gen.codegen.generate import device_of, legal_config
from m3gen.codegen.render import render, template_shas
from m3gen.compiler.fingerprint import fingerprint
from m3gen.errors import UserError
from m3gen.evaluate import place
from m3gen.ops.base import Op
from m3gen.spec import DTYPES, MINIMAX_M3, Problem
from m3gen.tables import merge
from m3gen.tables.load import load
from m3gen.tables.manifest import NAME, manifest_faults
from m3gen.tables.table import EXACT_FIELDS, Point, Table
from m3gen.targets import ARCHITECTURES, DEVICES


class Gravity(StrEnum):
    """How bad it is."""

    ERROR = "error"  # the row, or the table, is of no use
    STALE = "stale"  # it was made with other templates: demoted at run time, until it is tuned again
    NOTE = "note"  # worth knowing


@dataclass(frozen=True, slots=True)
class Remark:
    """`place` is the table, with the number of the row where it is of one."""

    gravity: Gravity
    code: str
    place: str
    words: str


def lint(root: Path) -> list[Remark]:
    """Remarks on every table of a folder and on its manifest, in the order of the files."""
    found = [Remark(Gravity.ERROR, "manifest", NAME, fault) for fault in manifest_faults(root)]
    for path in sorted(root.glob("*/*.json")):
        name = path.relative_to(root).as_posix()
        try:
            table = load(path)
        except UserError as error:
            found.append(Remark(Gravity.ERROR, "unusable", name, str(error)))
        else:
            found += lint_table(table, name)
    return found


def lint_table(table: Table, name: str) -> list[Remark]:
    """Remarks on one table, which is called `name`."""
    if table.arch not in ARCHITECTURES:
        return [Remark(Gravity.ERROR, "unknown-arch", name, f"no architecture is called {table.arch}")]
    if table.op not in ops.names():
        return [Remark(Gravity.ERROR, "unknown-op", name, f"no op is called {table.op}")]
    op = ops.get(table.op)
    found = list(_whole(op, table, name))
    for number, point in enumerate(table.points):
        where = f"{name} row {number}"
        found += [Remark(gravity, code, where, words) for gravity, code, words in _row(op, table, point)]
    return found + [Remark(Gravity.NOTE, "hole", name, words) for words in _holes(table)]


def _whole(op: Op, table: Table, name: str) -> Iterator[Remark]:
    if missing := set(merge.variant_fields(op, [p.problem for p in table.points])) - set(table.variant_fields):
        words = f"its kernels depend on {', '.join(sorted(missing))}, which variant_fields leaves out"
        yield Remark(Gravity.ERROR, "variant", name, words)
    keys = [repr(sorted(fallback.key.items())) for fallback in table.fallback]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            words = f"fallback {number} has the key of an earlier one, which always answers before it"
            yield Remark(Gravity.ERROR, "shadowed", name, words)
    here = fingerprint()
    if others := [compiler for compiler in table.provenance.compilers if compiler != here]:
        words = f"rows of {', '.join(others) or 'an unknown compiler'}; here is {here}: m3gen tables check tells"
        yield Remark(Gravity.NOTE, "compiler", name, words)
    now = template_shas(op.template)
    changed = [file for file, sha in table.provenance.templates.items() if now.get(file) != sha]
    if changed:
        stale = sum(_stale(op, table, point) for point in table.points)
        words = (
            f"{', '.join(changed)} changed since its export: {stale} of {len(table.points)} rows make another text"
        )
        yield Remark(Gravity.NOTE, "template", name, words)


def _row(op: Op, table: Table, point: Point) -> Iterator[tuple[Gravity, str, str]]:
    problem = point.problem
    for words in _never(problem):
        yield Gravity.ERROR, "never", f"it can never match: {words}"
    if not _is_of_the_model(op, problem):
        shape = (
            f"{problem.group_size} query heads on each of {problem.kv_heads} KV heads, head dim {problem.head_dim}"
        )
        yield Gravity.NOTE, "foreign", f"no rank of {MINIMAX_M3.name} asks for it: {shape}"
    folded = op.canonical(problem)
    if folded != problem and any(other.problem == folded for other in table.points):
        words = f"it does the work of the row for rows {folded.rows}, context {folded.context}: one of them is too many"
        yield Gravity.ERROR, "shadowed", words
    if reason := merge.refusal(op, problem, table.configs[point.config]):
        yield Gravity.ERROR, "space", f"its config {point.config} is not of the op's space: {reason}"
    elif _stale(op, table, point):
        yield Gravity.STALE, "stale", "its template makes another text today than the one that was checked"
    if not place.suffices(point.gate, table.arch):
        words = f"it passed the gate on {point.gate} only; {table.arch} wants {place.gates(table.arch)[-1]}"
        yield Gravity.ERROR, "gate", words
    if spilling := [table.code[name] for name in point.launches if table.code[name].vector_spills]:
        yield Gravity.NOTE, "spills", f"{spilling[0].kernel} spills {spilling[0].vector_spills} registers"


def _never(problem: Problem) -> Iterator[str]:
    """Why no device of the architecture ever asks for a problem."""
    devices = [d for d in DEVICES.values() if d.arch == problem.arch]
    if problem.compute_units not in {d.compute_units for d in devices}:
        known = ", ".join(f"{d.name} {d.compute_units}" for d in devices)
        yield f"no device of {problem.arch} has {problem.compute_units} compute units ({known})"
    dialect = ARCHITECTURES[problem.arch].fp8
    for name in ("q_dtype", "kv_dtype"):
        held = getattr(problem, name)
        if DTYPES[held].is_fp8 and held != dialect:
            yield f"{name} {held}, the fp8 of {problem.arch} is {dialect}"


def _is_of_the_model(op: Op, problem: Problem) -> bool:
    fields = ("group_size", "kv_heads", "head_dim", "page_size", "topk")
    cache, device = ops.Cache(problem.kv_dtype, problem.kv_scale), device_of(problem)
    for ranks in (1, 2, 4, 8, 16):
        made = op.problem(device, MINIMAX_M3.shard(ranks), cache, problem.query_len)
        if made is not None and all(getattr(made, name) == getattr(problem, name) for name in fields):
            return True
    return False


def _stale(op: Op, table: Table, point: Point) -> bool:
    try:
        config = legal_config(op, point.problem, table.configs[point.config])
    except ValueError:
        return True
    return render(op, point.problem, config).sha != point.source_sha


def _holes(table: Table) -> Iterator[str]:
    """Loads between rows that no row serves: where fewer rows end at a shorter context than more rows do."""
    ordered = sorted(table.points, key=lambda p: (_shape(p), p.problem.rows, p.problem.context))
    for _, of_shape in groupby(ordered, key=_shape):
        last = {rows: list(points)[-1] for rows, points in groupby(of_shape, key=lambda p: p.problem.rows)}
        for rows, point in last.items():
            if "context" in point.open_ended:
                continue
            longer = [p for r, p in last.items() if r > rows and _reach(p) > _reach(point)]
            if longer:
                yield (
                    f"up to {rows} rows end at a context of {point.problem.context}, "
                    f"{longer[0].problem.rows} rows go on to {longer[0].problem.context}: "
                    "longer contexts of fewer rows get the fallback"
                )


def _reach(point: Point) -> float:
    return float("inf") if "context" in point.open_ended else point.problem.context


def _shape(point: Point) -> Sequence[str]:
    return [str(getattr(point.problem, name)) for name in EXACT_FIELDS]
