"""`Finding`: a winner with all that a table says of it, as a store knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from m3gen import ops
from m3gen.codegen.generate import device_of
from m3gen.codegen.render import render
from m3gen.compiler.facts import KernelFacts
from m3gen.space import Config
from m3gen.store import Store, Winner
from m3gen.tables.table import LaunchCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`baseline_us` is the time of the op's default config, judged alike, None when it does not run;
    `registers` are those of the launch that takes the most. `others`: times of configs that win elsewhere, on
    this problem, judged alike: what a fallback is chosen by. `launches`: what its compiler made of it, empty when the
    store does not know."""

    winner: Winner
    baseline_us: float | None
    registers: int
    others: Mapping[Config, float] = field(default_factory=dict)
    launches: tuple[LaunchCode, ...] = ()


def findings(store: Store, winners: Iterable[Winner]) -> list[Finding]:
    """What `store` knows of each winner, in their order."""
    winners = list(winners)
    winning = {winner.config for winner in winners}
    return [_finding(store, winner, winning) for winner in winners]


def is_current(winner: Winner) -> bool:
    """Whether the text that the gate checked is what the templates of today make of this winner."""
    source = render(ops.get(winner.problem.op), winner.problem, winner.config)
    return source.sha == winner.verification.source_sha


def _finding(store: Store, winner: Winner, winning: set[Config]) -> Finding:
    problem, evaluation = winner.problem, winner.evaluation
    times = {
        record.config: record.evaluation.value_us
        for record in store.evaluations(problem, stage=evaluation.stage, judge=evaluation.judge)
        if record.evaluation.ok and record.evaluation.value_us is not None
    }
    facts = [found for key in evaluation.facts if (found := store.facts(key)) is not None]
    return Finding(
        winner=winner,
        baseline_us=times.get(ops.field_config(ops.get(problem.op), problem, device_of(problem))),
        registers=max((f.registers for f in facts), default=0),
        others={config: us for config, us in times.items() if config in winning},
        launches=tuple(launch_code(f) for f in facts) if len(facts) == len(evaluation.facts) else (),
    )


def launch_code(facts: KernelFacts) -> LaunchCode:
    """What a table keeps of the machine code of a launch."""
    return LaunchCode(
        kernel=facts.kernel,
        registers=facts.registers,
        vector_spills=facts.vector_spills,
        scalar_spills=facts.scalar_spills,
        scratch_bytes=facts.scratch_bytes,
        shared_bytes=facts.shared_bytes,
        workgroups_per_cu=facts.workgroups_per_cu,
        code_sha=facts.code_sha,
    )
