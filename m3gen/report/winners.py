"""The winners of a session or of a store as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from m3gen.report import layout, words
from m3gen.search.result import WinnerRow


def winners(rows: Iterable[WinnerRow], device: str = "") -> RenderableType:
    """A table per op, arch, scale mode and authority, each with its winning configurations; fits 80 columns.

    Times of one table stand on one authority, which its heading names: a predicted time is never mistaken for
    a measured one. `device` is named beside the architecture.
    """
    ordered = sorted(rows, key=lambda row: (_heading(row, device), row.problem))
    parts: list[RenderableType] = []
    for heading, group in groupby(ordered, lambda row: _heading(row, device)):
        members = list(group)
        parts += [layout.title("\n".join(heading)), _numbers(members), _configs(members)]
    return Group(*parts)


def _heading(row: WinnerRow, device: str) -> tuple[str, str]:
    problem = row.problem
    where = f"{problem.arch} ({device})" if device else f"{problem.arch}, {problem.compute_units} CUs"
    query = f", {problem.query_len} query tokens a request" if problem.query_len > 1 else ""
    scales = ", per-token KV scales" if problem.kv_scale == "per_token_head" else ""
    authority = words.judged(row.stage, row.judge, row.value_us, row.high_us)
    return (
        f"{problem.op} on {where}, context {words.context(problem)}{query}{scales}",
        f"times in us, {authority}; gate: {row.verification.on}",
    )


def _numbers(rows: Sequence[WinnerRow]) -> Table:
    waves, groups = words.occupancy_units(rows[0].problem.arch)
    columns: list[tuple[str, Callable[[WinnerRow], str]]] = [
        (">TP", lambda row: words.shard(row.problem)),
        ("KV", lambda row: row.problem.kv_dtype),
        (">rows", lambda row: str(row.problem.rows)),
        (">field", lambda row: words.microseconds(row.baseline_us)),
        (">winner", lambda row: words.microseconds(row.value_us)),
        (">ratio", lambda row: words.ratio(row.ratio)),
        ("limited by", lambda row: words.limit(row.limit, row.problem.arch)),
        (">regs", lambda row: str(row.registers)),
        (">" + waves.replace("/", "/\n"), lambda row: f"{row.waves_per_simd:.3g}"),
        (">" + groups.replace("/", "/\n"), lambda row: str(row.workgroups_per_cu)),
    ]
    cells = [[cell(row) for _, cell in columns] for row in rows]
    return layout.table((name for name, _ in columns), cells)


def _configs(rows: Sequence[WinnerRow]) -> RenderableType:
    """Each winning configuration once, with the loads it wins."""
    won: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        config = words.config_line(row.config, row.field_config)
        won.setdefault((words.shard(row.problem), row.problem.kv_dtype, config), []).append(row.problem.rows)
    cells = [(shard, kv, ",".join(map(str, sorted(loads))), config) for (shard, kv, config), loads in won.items()]
    columns = (">TP", "KV", "rows", "where the winner differs from the field")
    return Group(Text(""), layout.table(columns, cells, fold=columns[3:]), Text(""))
