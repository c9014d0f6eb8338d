"""What each term of the predictor is worth: how much worse its winners are without the term.

Candidates of a few problems are compiled once and predicted twice, by the whole model and by the model without one
term; the whole model then says what the winner of the other costs. That is a statement about the model, not about
a device.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from m3gen import ops
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate.agreement import kendall
from m3gen.evaluate.predict import SWITCHES
from m3gen.evaluate.validation import evaluation
from m3gen.ops import Cache
from m3gen.spec import MINIMAX_M3, Problem
from m3gen.targets import Vendor, architecture, default_device

ARCHS = ("gfx942", "sm_90")
CONTEXTS = {"sparse_decode": 8192, "index_score": 32768}  # op -> tokens
ROWS = (1, 64, 256)
_RANKS = 4


@dataclass(frozen=True, slots=True)
class Ablated:
    """One problem without one term. `regret`: by what share the pick without it is slower than the pick with it,
    as the whole model has it. `agreement`: Kendall's tau of the two orders of all candidates."""

    problem: Problem
    term: str
    candidates: int
    regret: float
    agreement: float | None


def requests(candidates: int, archs: Sequence[str] = ARCHS, seed: int = 0) -> list[CompileRequest]:
    """So many random candidates of each op on each architecture, each under every load; bf16, TP 4."""
    found = []
    for arch in archs:
        where = default_device(arch)
        for name, context in CONTEXTS.items():
            op = ops.get(name)
            base = op.problem(where, MINIMAX_M3.shard(_RANKS), Cache("bf16"), 1)
            assert base is not None
            problems = tuple(dict.fromkeys(op.canonical(base.with_load(rows, context)) for rows in ROWS))
            space = op.space(problems[0], where)
            ids = random.Random(seed).sample(range(len(space)), min(candidates, len(space)))
            found += [CompileRequest(name, problems, space.config(id)) for id in ids]
    return found


def ablate(compiled: Iterable[tuple[CompileRequest, CompileResult]]) -> list[Ablated]:
    """Every problem without every term of `SWITCHES`; candidates that failed to compile are left out."""
    fields: dict[Problem, list[tuple[CompileRequest, CompileResult, int]]] = {}
    for request, result in compiled:
        for number, problem in enumerate(request.problems):
            if result.ok:
                fields.setdefault(problem, []).append((request, result, number))
    return [_ablated(problem, term, field) for problem, field in fields.items() for term in terms(problem.arch)]


def terms(arch: str) -> tuple[str, ...]:
    """What can be left out of predictions for an architecture: where nothing is simulated, nothing of that."""
    simulated = architecture(arch).vendor is Vendor.AMD
    return tuple(one for one in SWITCHES if simulated or one not in ("conflicts", "simulation"))


def _ablated(problem: Problem, term: str, field: Sequence[tuple[CompileRequest, CompileResult, int]]) -> Ablated:
    where = default_device(problem.arch)

    def times(without: frozenset[str]) -> list[float]:
        return [
            evaluation(result, number, problem, request.config, where, without).value_us or 0.0
            for request, result, number in field
        ]

    whole, without = times(frozenset()), times(frozenset({term}))
    pick = min(range(len(field)), key=lambda number: (without[number], field[number][0].config.sha))
    return Ablated(problem, term, len(field), whole[pick] / min(whole) - 1, kendall(whole, without))
