"""Where tables and generated modules are looked for, in the order in which they are asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from m3gen.errors import UserError
from m3gen.runtime.modules import Modules
from m3gen.runtime.selection import Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder of tables, `<arch>/<op>.json`, and the kernels generated from them."""

    rung: Rung
    tables: Path
    modules: Modules


def sources(arch: str, tables: Path | None, generated: Path | None) -> Iterator[Source]:
    """Override, user's, site's, release. Modules lie in `generated` beside the tables' folder unless said otherwise.

    `tables` and `generated` are what the caller of `load` named. The user's are `M3GEN_TABLES` and
    `M3GEN_GENERATED`, or in the user's data folder; the site's are in `site_dir()`. `UserError` for a named folder
    that is not there.
    """
    if tables is not None:
        folder = generated or tables.parent / "generated"
        yield Source(rung=Rung.OVERRIDE, tables=_there(tables, "tables"), modules=Modules.in_folder(folder / arch))
    elif generated is not None:
        raise UserError(f"generated={generated} without tables: name the folder of the tables as well")
    named_tables, named_modules = os.environ.get("M3GEN_TABLES"), os.environ.get("M3GEN_GENERATED")
    root = _there(Path(named_tables), "M3GEN_TABLES") if named_tables else data_dir() / "tuning_db"
    folder = _there(Path(named_modules), "M3GEN_GENERATED") if named_modules else root.parent / "generated"
    yield Source(rung=Rung.USER, tables=root, modules=Modules.in_folder(folder / arch))
    site = site_dir()
    modules = Modules.in_folder(site / "generated" / arch)
    yield Source(rung=Rung.SITE, tables=site / "tuning_db", modules=modules)
    yield Source(
        rung=Rung.RELEASE,
        tables=Path(str(files("m3gen.tuning_db"))),
        modules=Modules.in_package(f"m3gen.generated.{arch}"),
    )


def data_dir() -> Path:
    """The user's data folder, where `m3gen tune` outside a checkout leaves tables and modules: `M3GEN_HOME`,
    else by the XDG Base Directory Specification."""
    if home := os.environ.get("M3GEN_HOME"):
        return Path(home)
    base = os.environ.get("XDG_DATA_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".local" / "share") / "m3gen"


def site_dir() -> Path:
    """Where whoever runs the machine leaves tables and modules for all its users: `M3GEN_SITE`, else `m3gen` in the
    first of the XDG data folders."""
    if site := os.environ.get("M3GEN_SITE"):
        return _there(Path(site), "M3GEN_SITE")
    first = os.environ.get("XDG_DATA_DIRS", "").split(":")[0]
    return Path(first or "/usr/local/share") / "m3gen"


def verdict_files(arch: str) -> tuple[Path, ...]:
    """Where verdicts of `m3gen tables validate` are looked for; of two on one row the earlier file's counts."""
    return tuple(folder / "validated" / f"{arch}.json" for folder in (data_dir(), site_dir()))


def _there(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        raise UserError(f"{name}={folder} is not a folder: correct it or leave it out")
    return folder
