"""How far a candidate climbs: it goes on while what is known of it so far leaves it a chance to win.

    static ─> prior ─> compiled, analytic ─> run in the emulator, waves simulated ─> gate
              µs       seconds, all           seconds, AMD alone

The time of a cheaper rung says little by itself, so each has a margin: the share of that time that the last rung may
come down to. It is set by 1 946 candidates that went to the end (sparse_decode, bf16 and fp8 caches, 1, 16, 64 and 256
rows: sixteen problems; proposed by TPE; Triton 3.9, predict-amd-2), held against the best of each problem:

                                     gfx942         gfx950
    candidates of a problem          134 .. 173     96 .. 102
    rank correlation of analytic     0.59 .. 0.79   0.70 .. 0.81
    rank correlation of prior        0.25 .. 0.73   0.55 .. 0.79
    last rung over analytic          0.23 .. 8.4    0.39 .. 10.4
      for the winners                0.54 .. 1.02   0.47 .. 0.95
    last rung over prior             0.59 .. 58     0.98 .. 18
      for the winners                1.12 .. 2.1    0.98 .. 1.8
    stopped at ANALYTIC_MARGIN       13 to 43 %     20 to 43 %
      of 45 and 40 within 5 %        2              0
    stopped at PRIOR_MARGIN          0 to 28 %      2 to 31 %
      of 45 and 40 within 5 %        0              0

None of the sixteen winners is stopped. A margin of 0.7 on the analytic time would stop 31 to 78 %, and two winners.
What that cannot see is bank conflicts of the LDS, which only a run shows. On index_select, index_score, kv_insert
(gfx942, 128 candidates) and sparse_decode on sm_90 and sm_100 (476) the last rung is at 0.98 of the prior or more.
"""

from __future__ import annotations

from dataclasses import dataclass

from m3gen.compiler.request import CompileRequest

PRIOR_MARGIN = 0.7
ANALYTIC_MARGIN = 0.45
# The analytic margin of the other problems that share a candidate's code. Four loads together, hardly a candidate is
# hopeless for all of them at the margin above (2 to 5 %), 12 to 30 % are with this one. What a problem misses by it, 3
# of 1 868 times something within 2 % of its best, it may still ask for itself.
PASSENGER_MARGIN = 0.8

STOPPED = "stopped"
"""In `KernelFacts.extra`, true: the kernel could have been run and was not."""


@dataclass(frozen=True, slots=True)
class ClimbRequest:
    """A candidate and, for each of its problems, the microseconds it has to get under; None where any time is wanted.

    The first is the problem that it was asked for. `device` by name.
    """

    compile: CompileRequest
    device: str
    limits_us: tuple[float | None, ...]


def can_win(estimate_us: float, margin: float, limit_us: float | None) -> bool:
    """Whether a candidate that a rung of this margin puts at `estimate_us` may still get under the limit."""
    return limit_us is None or margin * estimate_us <= limit_us
