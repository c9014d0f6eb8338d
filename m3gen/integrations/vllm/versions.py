"""The versions of vLLM whose model-runner state, metadata and layers are those that this integration knows."""

from __future__ import annotations

import re

from m3gen.errors import UserError

KNOWN = ((0, 32), (0, 33))


def check(version: str) -> None:
    """`UserError` for a version of vLLM that is none of 0.32.x and 0.33.x."""
    found = re.match(r"(\d+)\.(\d+)\.", version)
    if found is None or (int(found[1]), int(found[2])) not in KNOWN:
        words = ", ".join(f"{major}.{minor}.x" for major, minor in KNOWN)
        raise UserError(
            f"vLLM is {version}, m3gen's integration knows {words}: install one of these, or unset M3GEN_VLLM"
        )
