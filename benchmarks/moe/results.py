"""Compiled facts on disk: facts-<campaign>.json.gz, one row a configuration, from which all else is computed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from typing import Any

from m3gen.compiler.facts import KernelFacts
from m3gen.spec import Status

from .campaign import Campaign
from .compiling import Compiled
from .config import MoeConfig

FOLDER = Path(__file__).parent  # where the repository keeps them

# Of one run and not of the machine code, or the same for every row.
_LEFT_OUT = ("extra", "kernel", "arch")


def path(folder: Path, campaign: Campaign) -> Path:
    return folder / f"facts-{campaign.name}.json.gz"


def write(folder: Path, campaign: Campaign, found: Iterable[Compiled]) -> None:
    """Sorted by configuration, so that equal facts give equal files."""
    rows = [_row(one) for one in sorted(found, key=lambda one: one.config)]
    text = json.dumps({"campaign": campaign.name, "kernels": rows}, separators=(",", ":"), sort_keys=True)
    path(folder, campaign).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(folder: Path, campaign: Campaign) -> dict[MoeConfig, Compiled]:
    """Empty where there is no file yet."""
    file = path(folder, campaign)
    if not file.is_file():
        return {}
    rows = json.loads(gzip.decompress(file.read_bytes()))["kernels"]
    return {one.config: one for one in (_compiled(row, campaign) for row in rows)}


def _row(one: Compiled) -> dict[str, Any]:
    facts = None
    if one.facts:
        facts = {k: v for k, v in one.facts.to_dict().items() if k not in _LEFT_OUT}
        facts["compile_seconds"] = round(one.facts.compile_seconds, 2)
    return {"config": astuple(one.config), "status": str(one.status), "reason": one.reason, "facts": facts}


def _compiled(row: dict[str, Any], campaign: Campaign) -> Compiled:
    facts = None
    if row["facts"]:
        facts = KernelFacts.from_dict({"kernel": "fused_moe_kernel", "arch": campaign.arch, **row["facts"]})
    return Compiled(MoeConfig(*row["config"]), Status(row["status"]), row["reason"], facts)
