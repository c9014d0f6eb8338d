"""A portfolio as a table and as an object."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.report import layout, words
from m3gen.search.portfolio import Member, Portfolio


def portfolio(found: Portfolio, heading: str) -> RenderableType:
    """A line a member, what it serves, and what all cost against the best of each bucket; fits 80 columns."""
    if not found.members:
        return Text(f"{heading}: no time is known, tune it first")
    cells = [
        (str(number), _serves(member), words.ratio(_worst(found, member)), words.config_line(member.config))
        for number, member in enumerate(found.members, 1)
    ]
    columns = (">no", "serves", ">worst", "configuration")
    total = (
        f"{words.count(len(found.members), 'configuration')} for {words.count(len(found.regrets), 'problem')}: worst "
        f"regret {found.worst:.3f}, geometric mean {found.geometric_mean:.3f}"
    )
    parts: list[RenderableType] = [layout.title(heading), layout.table(columns, cells, fold=columns[1::2])]
    if found.unserved:
        parts.append(Text(f"not served: {', '.join(map(words.problem_line, found.unserved))}"))
    return Group(*parts, Text(total))


def portfolio_object(found: Portfolio) -> dict[str, Any]:
    """The fields of the JSON object of `portfolio`, after op and arch."""
    return {
        "worst_regret": found.worst,
        "geometric_mean_regret": found.geometric_mean,
        "members": [
            {
                "config": member.config.to_dict(),
                "worst_regret": _worst(found, member),
                "serves": [
                    {"problem": problem.to_dict(), "regret": found.regrets[problem]} for problem in member.serves
                ],
            }
            for member in found.members
        ],
        "unserved": [problem.to_dict() for problem in found.unserved],
    }


def _worst(found: Portfolio, member: Member) -> float:
    return max(found.regrets[problem] for problem in member.serves)


def _serves(member: Member) -> str:
    """ "TP 4 bf16 rows 1,16; TP 4 e4m3fnuz rows 1"."""
    loads: dict[str, list[int]] = {}
    for problem in member.serves:
        ranks = words.tensor_parallel(problem)
        width = f"TP {ranks}" if ranks else words.shard(problem)
        loads.setdefault(f"{width} {words.kv(problem)}", []).append(problem.rows)
    return "; ".join(f"{name} rows {','.join(map(str, sorted(rows)))}" for name, rows in loads.items())
