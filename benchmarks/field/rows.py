"""`Row`: one match as it came out, and the file of all of them, from which the page is made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from m3gen.targets import ARCHITECTURES

from .matches import NAMES

FILE = Path(__file__).parent / "rows.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Times in microseconds; 0 where there is none. `rival` names the best predicted of vLLM's kernels, `others` the
    times of the rest; `error` says why there is no prediction, `remarks` what the emulator did not run."""

    device: str
    arch: str
    op: str
    cache: str
    rows: int
    context: int
    origin: str
    us: float = 0.0
    terms: Mapping[str, float] = field(default_factory=dict)
    rival: str = ""
    rival_us: float = 0.0
    rival_terms: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    floor_us: float = 0.0
    reachable_us: float = 0.0
    judge: str = ""
    compiler: str = ""
    vllm: str = ""
    error: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.device, self.op, self.cache, self.rows, self.context)

    @property
    def ratio(self) -> float | None:
        """The field's time over the pick's."""
        return self.rival_us / self.us if self.rival_us and self.us else None


def load(path: Path = FILE) -> list[Row]:
    """Empty where there is no file yet."""
    if not path.is_file():
        return []
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(**{**one, "remarks": tuple(one["remarks"])}) for one in found]


def save(rows: Iterable[Row], path: Path = FILE) -> None:
    """One a line, so that a rerun of a part changes its lines alone."""
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")


def merged(known: Iterable[Row], fresh: Iterable[Row]) -> list[Row]:
    """The fresh rows in the place of all those of their device and op, in one order whatever was run last."""
    new = list(fresh)
    again = {(row.device, row.op) for row in new}
    return sorted([*(row for row in known if (row.device, row.op) not in again), *new], key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    kinds = list(ARCHITECTURES).index(row.arch), row.device, NAMES.index(row.op)
    return (*kinds, row.cache != "bf16", row.cache, row.context, row.rows)
