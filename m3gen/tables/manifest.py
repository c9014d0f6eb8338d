"""`manifest.json` of a folder of tables: the SHA-256 of every table's file, by path."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from m3gen.tables.files import replace_text

NAME = "manifest.json"


def write_manifest(root: Path) -> Path:
    """Bring the manifest up to the tables that are there. The caller keeps other writers out."""
    body = json.dumps({"format": 1, "tables": _shas(root)}, indent=1, sort_keys=True)
    replace_text(root / NAME, body + "\n")
    return root / NAME


def listed_shas(root: Path) -> dict[str, str] | None:
    """What the manifest says of each table, by path; None without a manifest that can be read."""
    try:
        listed = json.loads((root / NAME).read_text(encoding="utf-8"))["tables"]
        return {str(name): str(sha) for name, sha in listed.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def manifest_faults(root: Path) -> list[str]:
    """What does not agree between manifest and tables, a line each. A missing manifest is one fault."""
    if (listed := listed_shas(root)) is None:
        return [f"{root / NAME} is missing or not a manifest: export a table to write it again"]
    found = _shas(root)
    return [
        *(f"{root / name} is not in the manifest" for name in sorted(found.keys() - listed.keys())),
        *(f"{root / name} is in the manifest and not there" for name in sorted(listed.keys() - found.keys())),
        *(
            f"{root / name} is not the file of the manifest"
            for name in sorted(found.keys() & listed.keys())
            if found[name] != listed[name]
        ),
    ]


def _shas(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.glob("*/*.json"))
    }
