"""`KernelSource`: rendered text with the identity of every template behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A self-contained Python module: imports, `@triton.jit` kernels and one launcher named `entry`.

    `templates` maps each template file that took part to the SHA-256 of its text.
    """

    op: str
    entry: str
    text: str
    templates: Mapping[str, str]

    @property
    def sha(self) -> str:
        """SHA-256 of the text, 64 hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()
