"""`FactsCache`: facts and assembly by key, shared by every process of one user.

    <root>/<first two digits>/<key>.json       {"schema", "key", "sha" of the facts, "facts"}
    <root>/<first two digits>/<key>.s.gz       the assembly they were read from

Every write is a file of its own renamed into place; any entry that is not perfect is a miss.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from pathlib import Path

from m3gen.compiler.facts import KernelFacts
from m3gen.errors import UserError

_SCHEMA = 1  # of the entry itself; how facts are read is part of every key


class FactsCache:
    """Content-addressed store of `KernelFacts`. Reading never writes; failing to write never raises."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, root: Path) -> FactsCache:
        """The cache at `root`, made if need be; `UserError` when it cannot be written."""
        try:
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=root):
                pass
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(
                f"cannot write the facts cache at {root} ({reason}): make it writable or set M3GEN_CACHE"
            ) from None
        return cls(root)

    def get(self, key: str) -> KernelFacts | None:
        """The facts stored under `key`, or None."""
        try:
            entry = json.loads(self._path(key, ".json").read_bytes())
            if entry["schema"] != _SCHEMA or entry["key"] != key or entry["sha"] != _sha(entry["facts"]):
                return None
            return KernelFacts.from_dict(entry["facts"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def assembly(self, key: str) -> str | None:
        """The assembly stored under `key`, or None."""
        try:
            return gzip.decompress(self._path(key, ".s.gz").read_bytes()).decode()
        except (OSError, EOFError, ValueError):
            return None

    def put(self, key: str, facts: KernelFacts, assembly: str) -> bool:
        """Store under `key`, replacing what is there; False when the disk refuses."""
        data = json.loads(json.dumps(facts.to_dict()))
        entry = {"schema": _SCHEMA, "key": key, "sha": _sha(data), "facts": data}
        try:
            # The facts come last: an entry that is found has its assembly beside it.
            replace_file(self._path(key, ".s.gz"), gzip.compress(assembly.encode(), 6, mtime=0))
            replace_file(self._path(key, ".json"), json.dumps(entry, sort_keys=True).encode())
        except OSError:
            return False
        return True

    def _path(self, key: str, suffix: str) -> Path:
        if not key.isalnum():
            raise ValueError(f"{key!r} is no key: expected hex digits")
        return self.root / key[:2] / (key + suffix)


def _sha(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, its folder with it; whoever reads meanwhile sees the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
