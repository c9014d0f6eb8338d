"""A folder with a table and a kernel, laid out as vLLM's wheel is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path("vllm/model_executor/layers/fused_moe")


def table_entry(m: int, n: int, k: int, warps: int, **options: int) -> dict[str, int]:
    blocks = {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 1}
    return {**blocks, "num_warps": warps, "num_stages": 2, "waves_per_eu": 0, **options}


def write_table(wheel: Path, name: str, table: Mapping[str, Any]) -> None:
    configs = wheel / FOLDER / "configs"
    configs.mkdir(parents=True, exist_ok=True)
    (configs / name).write_text(json.dumps(table))
