"""Problems that no search can help are refused before any work."""

from __future__ import annotations

from m3gen.errors import UserError
from m3gen.space import Space
from m3gen.spec import Problem


def require_candidates(problem: Problem, space: Space) -> None:
    """`UserError` naming the rules that emptied the space, the one that refused most of it first."""
    if len(space):
        return
    reasons = {rule.code: f" ({rule.reason})" for rule in space.constraints if isinstance(rule.reason, str)}
    cut = sorted(space.refused.items(), key=lambda item: -item[1])
    rules = "; ".join(f"{code} refuses {count}{reasons.get(code, '')}" for code, count in cut)
    raise UserError(
        f"no configuration of {problem.op} is valid at {problem.arch}, rows {problem.rows}, KV {problem.kv_dtype}, "
        f"head dim {problem.head_dim}, page {problem.page_size}: of {space.raw_size} {rules}; "
        "ask for another shape, or widen the op's space"
    )
