"""Where things live: the checkout if there is one, else the user's own folders."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Root of the source checkout m3gen runs from (editable installs too), or None when installed."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "templates").is_dir() else None


def data_dir() -> Path:
    """The user's data: the store, tuned tables, generated modules. `M3GEN_HOME` overrides it."""
    if home := os.environ.get("M3GEN_HOME"):
        return Path(home)
    from platformdirs import user_data_path

    return user_data_path("m3gen")


def cache_dir() -> Path:
    """What can be made again: facts and machine code by content. `M3GEN_CACHE` overrides it."""
    if cache := os.environ.get("M3GEN_CACHE"):
        return Path(cache)
    from platformdirs import user_cache_path

    return user_cache_path("m3gen")


def store_url() -> str:
    """The database: `M3GEN_STORE` or a SQLite file in `data_dir()`."""
    return os.environ.get("M3GEN_STORE") or f"sqlite:///{data_dir() / 'm3gen.db'}"


def tables_dir() -> Path:
    """Where `tune` writes tables: the checkout's `tuning_db/`, or the user's own."""
    root = checkout()
    return (root if root else data_dir()) / "tuning_db"


def generated_dir() -> Path:
    """Where `tune` and `generate` write modules: the checkout's `generated/`, or the user's own."""
    root = checkout()
    return (root if root else data_dir()) / "generated"
