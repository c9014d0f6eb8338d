"""A recorded space that is made up: smooth, rugged in one corner, failing in another."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from m3gen.replay.recorded import Point


def made_up(shift: int = 0) -> dict[Point, float | str]:
    """2000 configs, the best at (3 + shift, 6, 2, "b")."""
    found: dict[Point, float | str] = {}
    for a, b, c, t in itertools.product(range(10), range(10), range(5), ("a", "b", "c", "d")):
        rugged = 1.0 + 0.3 * ((a * 7 + b * 3 + c) % 5)
        away = abs(a - 3 - shift) + abs(b - 6) + 2 * abs(c - 2) + 3 * (t != "b")
        found[a, b, c, t] = "RuntimeFailedConfig" if a == 9 and c == 4 else rugged * (1.0 + 0.4 * away)
    found[3 + shift, 6, 2, "b"] = 0.9
    return found


def write(folder: Path, device: str, shift: int = 0) -> Path:
    """The made-up space as a file."""
    rows = [
        {
            "config": list(point),
            "median_ms": outcome if isinstance(outcome, float) else None,
            "status": "ok" if isinstance(outcome, float) else outcome,
        }
        for point, outcome in made_up(shift).items()
    ]
    values = {"a": list(range(10)), "b": list(range(10)), "c": list(range(5)), "t": ["a", "b", "c", "d"]}
    parameters = [{"name": name, "values": each} for name, each in values.items()]
    path = folder / f"{device}.json"
    path.write_text(json.dumps({"kernel": "made", "device": device, "parameters": parameters, "rows": rows}))
    return path
