"""Winners as the store has them, and as a session has them: from one to the other."""

from __future__ import annotations

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.evaluate.evaluation import Evaluation
from m3gen.search.result import WinnerRow
from m3gen.store import Store, Winner
from m3gen.tables.findings import findings


def winner_row(store: Store, winner: Winner) -> WinnerRow:
    """A stored winner beside the default of its problem, both judged alike."""
    problem, evaluation = winner.problem, winner.evaluation
    value = _value(evaluation)
    [finding] = findings(store, [winner])
    baseline = finding.baseline_us
    facts = [found for key in evaluation.facts if (found := store.facts(key)) is not None]
    widest = max(facts, key=lambda f: f.registers, default=None)
    return WinnerRow(
        problem=problem,
        config=winner.config,
        stage=evaluation.stage,
        judge=evaluation.judge,
        value_us=value,
        low_us=evaluation.low_us,
        high_us=evaluation.high_us,
        baseline_us=baseline,
        ratio=None if baseline is None else baseline / value,
        limit=evaluation.limit,
        registers=finding.registers,
        waves_per_simd=widest.waves_per_simd if widest else 0.0,
        workgroups_per_cu=widest.workgroups_per_cu if widest else 0,
        verification=winner.verification,
        field_config=ops.field_config(ops.get(problem.op), problem, device_of(problem)),
    )


def winner_of(store: Store, row: WinnerRow) -> Winner:
    """What the store knows of the winner of a session: the evaluation that the row stands on."""
    record = next(
        record
        for record in reversed(store.evaluations(row.problem, stage=row.stage, judge=row.judge))
        if record.config == row.config and record.evaluation.value_us == row.value_us
    )
    facts = store.facts(record.evaluation.facts[0]) if record.evaluation.facts else None
    return Winner(
        problem=row.problem,
        config=row.config,
        evaluation=record.evaluation,
        verification=row.verification,
        compiler=facts.compiler if facts else "",
        created_at=record.created_at,
    )


def _value(evaluation: Evaluation) -> float:
    assert evaluation.value_us is not None  # the store's winners have a value
    return evaluation.value_us
