"""`Config`: one point of a space in canonical form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

Value = int | bool | str


class Config(Mapping[str, Value]):
    """Tunables of one candidate: immutable, hashable, sorted by name, without inactive parameters.

    Two spellings of one kernel are therefore one `Config`, with one `sha`.
    """

    __slots__ = ("_hash", "_items", "_text")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._items = dict(sorted(values.items()))
        self._text = json.dumps(self._items, separators=(",", ":"))
        # bool and int hash alike; the canonical JSON tells True from 1.
        self._hash = hash(self._text)

    def __getitem__(self, name: str) -> Value:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Config):
            return self._text == other._text
        return NotImplemented

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{k}={v!r}' for k, v in self.items())})"

    def to_dict(self) -> dict[str, Any]:
        return dict(self._items)

    def canonical_json(self) -> str:
        """Sorted keys, no blanks: equal configs have equal text."""
        return self._text

    @property
    def sha(self) -> str:
        """SHA-256 of the canonical JSON, 64 hex digits."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()
