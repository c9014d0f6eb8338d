"""Winners into the tables that ship: merged with what is there, written by atomic replace."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from m3gen import ops
from m3gen.codegen.render import template_shas
from m3gen.errors import UserError
from m3gen.evaluate import place
from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.ops.base import Op
from m3gen.spec import CONTEXT_BUCKETS, Problem
from m3gen.store import Winner
from m3gen.tables import merge
from m3gen.tables.assemble import Parts, assemble
from m3gen.tables.files import replace_text, writing
from m3gen.tables.findings import Finding, is_current
from m3gen.tables.load import load
from m3gen.tables.manifest import write_manifest
from m3gen.tables.table import Point, PointStatus, Table, config_id
from m3gen.tables.text import dumps

_STATUS = {Stage.MEASURED: PointStatus.MEASURED, Stage.PREDICTED: PointStatus.PREDICTED}


def export(findings: Iterable[Finding], root: Path) -> list[Path]:
    """Merge winners into `root/<arch>/<op>.json` and bring `root/manifest.json` up to date; the paths.

    Points of other problems stay; `merge.displaces` says which of two on one problem does. The same findings
    give the same bytes. `UserError`, with nothing written, for a winner that did not pass the gate or passed
    it as another text, for one of AMD that passed on the interpreter alone, for a config outside the op's space, for a
    table there that cannot be read, and for a folder that cannot be written.
    """
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        _require_sound(finding)
        problem = finding.winner.problem
        grouped.setdefault((problem.arch, problem.op), []).append(finding)
    with writing(root):
        made = {}
        for (arch, op), members in sorted(grouped.items()):
            path = root / arch / f"{op}.json"
            made[path] = merged(load(path) if path.exists() else None, members)
        for path, table in made.items():
            replace_text(path, dumps(table))
        if made:
            write_manifest(root)
    return list(made)


def merged(old: Table | None, findings: Iterable[Finding]) -> Table:
    """The table that `old` becomes with findings of its arch and op, which are verified and at least one.

    A point of `old` whose config the op's space no longer has cannot run: it is left out, with a warning.
    """
    findings = list(findings)
    op = ops.get(findings[0].winner.problem.op)
    parts = Parts()
    if old:
        parts.add(old)
        parts.points = {point.problem: point for point in _usable(op, old)}
    for problem, (point, finding) in _best(op, findings).items():
        parts.configs[point.config] = finding.winner.config.to_dict()
        parts.code |= {code.id: code for code in finding.launches}
        parts.times[problem] = {config_id(config): us for config, us in finding.others.items()}
        if problem not in parts.points or merge.displaces(point, parts.points[problem]):
            parts.points[problem] = point
    arch = findings[0].winner.problem.arch
    return assemble(op, arch, parts, templates=template_shas(op.template), date=_date(old, findings))


def _usable(op: Op, old: Table) -> list[Point]:
    usable = [point for point in old.points if merge.refusal(op, point.problem, old.configs[point.config]) is None]
    if lost := len(old.points) - len(usable):
        warnings.warn(
            f"{lost} of the {len(old.points)} points of {old.arch}/{old.op}.json hold configs that the op's "
            "space no longer has and are left out: tune these problems again",
            RuntimeWarning,
            stacklevel=2,
        )
    return usable


def _date(old: Table | None, findings: Iterable[Finding]) -> str:
    """Of the newest evidence, not of the export: the same evidence gives the same table."""
    dates = [finding.winner.created_at[:10] for finding in findings]
    return max([*dates, old.provenance.date] if old else dates)


def _best(op: Op, findings: Iterable[Finding]) -> dict[Problem, tuple[Point, Finding]]:
    """One finding a problem: the op folds loads that it cannot tell apart, so several may meet in one. `UserError`
    for two that contradict each other."""
    best: dict[Problem, tuple[Point, Finding]] = {}
    for finding in findings:
        point = _point(op, finding)
        held = best.get(point.problem)
        if held is not None and (reason := merge.conflict(point, held[0])):
            raise UserError(
                f"two winners of {point.problem.canonical_json()} contradict each other ({reason}): "
                "remove one from the store with `m3gen store prune`, or tune again"
            )
        if held is None or merge.better(point, held[0]):
            best[point.problem] = (point, finding)
    return best


def _point(op: Op, finding: Finding) -> Point:
    winner, evaluation = finding.winner, finding.winner.evaluation
    if evaluation.value_us is None:
        raise ValueError(f"a winner without a time: {winner.problem.canonical_json()}")
    problem = op.canonical(winner.problem)
    us = _microseconds(evaluation.value_us)
    return Point(
        problem=problem,
        config=config_id(winner.config),
        us=us,
        low_us=us if evaluation.low_us is None else min(us, _microseconds(evaluation.low_us)),
        high_us=us if evaluation.high_us is None else max(us, _microseconds(evaluation.high_us)),
        baseline_us=None if finding.baseline_us is None else _microseconds(finding.baseline_us),
        status=_STATUS[evaluation.stage],
        judge=_label(evaluation.judge),
        gate=winner.verification.on,
        limit=_label(evaluation.limit),
        registers=finding.registers,
        compiler=_label(winner.compiler),
        source_sha=winner.verification.source_sha,
        evidence=_evidence(evaluation),
        open_ended=_open_ended(op, problem),
        launches=tuple(code.id for code in finding.launches),
    )


def _open_ended(op: Op, problem: Problem) -> tuple[str, ...]:
    """Context, when the op folds the longest one into that of the point."""
    longest = problem.with_load(problem.rows, CONTEXT_BUCKETS[-1])
    return ("context",) if op.canonical(longest) == problem else ()


def _evidence(evaluation: Evaluation) -> str:
    """SHA-256 of everything the evaluation says, the keys of its facts among it."""
    data = {f.name: getattr(evaluation, f.name) for f in fields(evaluation)}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in an evaluation")


def _microseconds(value: float) -> float:
    """To the tenth of a nanosecond: no time is known any better, and a diff stays readable."""
    return max(round(value, 4), 0.0001)


def _label(text: str) -> str:
    """`text` in the characters that a table may hold."""
    return re.sub(r"[^A-Za-z0-9 _.,:;=+/@()-]", "_", text)[:256]


def unsound(winner: Winner) -> str:
    """Why a table does not take this winner, and what to do about it; "" when it does."""
    verdict, arch = winner.verification, winner.problem.arch
    if not verdict.ok:
        return f"has not passed the correctness gate ({verdict.status}): run `m3gen verify`, then export again"
    if not place.suffices(verdict.on, arch):
        wanted = place.gates(arch)[-1]
        return (
            f"has passed the gate on {verdict.on} only: run `m3gen verify --arch {arch} --on {wanted}`, "
            "then export again"
        )
    if verdict.on == place.MACHINE_CODE and verdict.environment.get("compiler") != winner.compiler:
        return (
            f"has passed the gate as the code of {verdict.environment.get('compiler')}, its time is that of "
            f"{winner.compiler or 'an unknown compiler'}: tune it again, then export"
        )
    if reason := merge.refusal(ops.get(winner.problem.op), winner.problem, winner.config):
        return f"is not of the op's space: {reason}; tune it again, then export"
    if not is_current(winner):
        return "was checked as another text than its templates make today: tune it again, then export"
    return ""


def _require_sound(finding: Finding) -> None:
    if reason := unsound(finding.winner):
        raise UserError(f"the winner of {finding.winner.problem.canonical_json()} {reason}")
