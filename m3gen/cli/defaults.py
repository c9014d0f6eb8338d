"""`m3gen verify --all`: the default configuration of every op through the gate, the longest problems first."""

from __future__ import annotations

import time
from collections.abc import Sequence

from m3gen import ops
from m3gen.cli import output, problems, work
from m3gen.cli.work import Candidate
from m3gen.evaluate.gate import SEEDS
from m3gen.evaluate.verification import Verification
from m3gen.ops.coverage import ALL, QUICK, Coverage
from m3gen.report import verdicts

# Seconds of one problem at TP 4, one row, query length 1, on two cores: an order, nothing more.
_SECONDS = {
    "index_score": 30,
    "kv_convert": 17,
    "qk_norm_rope_insert": 15,
    "dense_decode": 12,
    "sparse_decode": 12,
    "kv_copy": 9,
    "kv_insert": 8,
    "kv_zero": 7,
    "kv_gather": 6,
    "index_topk": 3,
}
_FEW_ROWS = 16  # a default splits these, and every split is a program to interpret


def verify(arch: str, names: Sequence[str] | None, *, quick: bool, jobs: int, on: str, as_json: bool) -> bool:
    """Verify and print, each problem as it is done; whether all passed."""
    coverage, seeds = (QUICK, SEEDS[:1]) if quick else (ALL, SEEDS)
    waiting = candidates(arch, names, coverage)
    output.stderr().print(f"{len(waiting)} to verify on {verdicts.place(on)}, {jobs} at a time")
    started = time.monotonic()
    found: list[tuple[Candidate, Verification]] = []
    for candidate, verdict in work.verify(waiting, jobs, seeds, on):
        found.append((candidate, verdict))
        if not as_json:
            text = verdicts.group(candidate.problem, verdict, verdicts.bounds_of(candidate.problem))
            output.stdout().print(text, soft_wrap=True)
    results, seconds = [(one.problem, verdict) for one, verdict in found], time.monotonic() - started
    if as_json:
        objects = [verdicts.verification_object(one.problem, one.config, verdict) for one, verdict in found]
        output.print_object("verify", {**verdicts.tally_object(results, seconds), "verifications": objects})
    else:
        output.stdout().print(verdicts.tally(results, seconds), soft_wrap=True)
    return all(verdict.ok for _, verdict in results)


def candidates(arch: str, names: Sequence[str] | None, coverage: Coverage) -> list[Candidate]:
    """The default of each problem that `coverage` makes of the ops named, of all for None."""
    device = problems.find_device(arch, None)
    made = coverage.problems(problems.find_ops(names or ["all"]), device)
    found = work.distinct(Candidate(one, ops.get(one.op).default(one, device)) for one in made)
    return sorted(found, key=duration, reverse=True)


def duration(candidate: Candidate) -> float:
    """Seconds, roughly."""
    problem = candidate.problem
    split = 1.0 if problem.rows <= _FEW_ROWS else 0.25
    return _SECONDS.get(problem.op, 10) * problem.query_len * problem.kv_heads * split
