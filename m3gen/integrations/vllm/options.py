"""`Options`: what an engine says to m3gen in its `additional_config`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from m3gen.errors import UserError

KEY = "m3gen"
_TYPES: dict[str, type] = {"enabled": bool, "arch": str, "tables": str, "build": bool, "debug": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See `m3gen.integrations.vllm`."""

    enabled: bool = True
    arch: str | None = None
    tables: Path | None = None
    build: bool = True
    debug: bool = False

    @classmethod
    def of(cls, additional_config: Any) -> Options:
        """Those under "m3gen"; the defaults where there are none. `UserError` for an unknown name or a wrong type."""
        given = additional_config.get(KEY, {}) if isinstance(additional_config, Mapping) else {}
        if not isinstance(given, Mapping):
            raise UserError(
                f'additional_config["{KEY}"] is {given!r}: expected an object, such as {{"arch": "gfx942"}}'
            )
        known = [one.name for one in fields(cls)]
        for name, value in given.items():
            where = f'additional_config["{KEY}"]["{name}"]'
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise UserError(f"{where} is unknown: {hint}")
            if not isinstance(value, _TYPES[name]):
                raise UserError(f"{where} is {value!r}: expected a {_TYPES[name].__name__}")
        tables = given.get("tables")
        return cls(**{**given, "tables": None if tables is None else Path(tables)})
