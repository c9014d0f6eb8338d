"""Machine code made ahead of time, handed to Triton through its own cache; what does not fit is left to the JIT.

A bundle is a zip of `manifest.json` and `code/<folder>/<file>`, as `m3gen bundle` makes it. Its digests show damage,
not who made it: machine code is code, so take a bundle from where you take packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from m3gen.tables.schema import Check, Mismatch, compile_schema

FORMAT = 1
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 16 << 20
MAX_FILE_BYTES = 64 << 20

_FILE = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}$"
_SHA = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_LABEL = {"type": "string", "pattern": r"^[A-Za-z0-9 _.,:;=+/@()-]{0,256}$"}
_ENTRY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["op", "module", "kernel", "folder", "files", "facts"],
    "properties": {
        "op": _LABEL,
        "module": _LABEL,
        "kernel": {"type": "string", "pattern": _FILE},
        "folder": {"type": "string", "pattern": _FILE},
        "files": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 32,
            "propertyNames": {"pattern": _FILE},
            "additionalProperties": _SHA,
        },
        "facts": {"type": "object", "maxProperties": 64},
    },
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["format", "m3gen", "arch", "compiler", "entries"],
    "properties": {
        "format": {"enum": [FORMAT]},
        "m3gen": _LABEL,
        "arch": _LABEL,
        "compiler": _LABEL,
        "entries": {"type": "array", "maxItems": 20000, "items": _ENTRY},
    },
}


@dataclass(frozen=True, slots=True)
class Installed:
    """Entries that Triton will find, of which `known` were there. `reasons`: why others are left to the JIT."""

    entries: int
    known: int
    reasons: tuple[str, ...] = ()


def install(path: Path, *, arch: str | None, compiler: str, cache_dir: Path | None = None) -> Installed:
    """Put a bundle's machine code where Triton looks before it compiles.

    `arch` is that of the GPU that is here, None without one; `compiler` its fingerprint; `cache_dir` Triton's own by
    default. Whatever is wrong is a reason and never an exception: then the JIT compiles, as without a bundle.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(archive)
            for name, here in (("arch", arch), ("compiler", compiler)):
                if manifest[name] != here:
                    return Installed(0, 0, (f"the bundle {path} is for {name} {manifest[name]}, here is {here}",))
            return _install(archive, manifest["entries"], cache_dir or _tritons(), path)
    except Mismatch as error:
        return Installed(0, 0, (f"the bundle {path} is not usable: {error}",))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        return Installed(0, 0, (f"the bundle {path} cannot be used: {error}",))


def _install(archive: zipfile.ZipFile, entries: list[Mapping[str, Any]], root: Path, path: Path) -> Installed:
    done = known = 0
    reasons = []
    for entry in entries:
        folder, group = root / entry["folder"], f"__grp__{entry['kernel'][:150]}.json"
        if (folder / group).exists():
            known += 1
            continue
        files = {name: _read(archive, f"code/{entry['folder']}/{name}") for name in entry["files"]}
        damaged = [
            name for name, data in files.items() if hashlib.sha256(data).hexdigest() != entry["files"][name]
        ]
        if damaged:
            reasons.append(f"{damaged[0]} of {entry['module']} in the bundle {path} is damaged")
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            _replace(folder / name, data)
        # Last, for it is what Triton looks at: an entry that it finds is whole.
        children = {name: str(folder / name) for name in files}
        _replace(folder / group, json.dumps({"child_paths": children}).encode())
        done += 1
    return Installed(done + known, known, tuple(reasons))


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST_BYTES:
        raise Mismatch(f"its manifest is larger than {MAX_MANIFEST_BYTES} bytes")
    manifest: dict[str, Any] = json.loads(archive.read(MANIFEST))
    _check()(manifest)
    return manifest


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MAX_FILE_BYTES:
        raise ValueError(f"{name} is larger than {MAX_FILE_BYTES} bytes")
    return archive.read(name)


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".bundle.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _tritons() -> Path:
    from triton import knobs

    return Path(knobs.cache.dir)


@cache
def _check() -> Check:
    return compile_schema(_SCHEMA, {})
