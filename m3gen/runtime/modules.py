"""`Modules`: generated kernels of one architecture, found by the key of their (variant, config)."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from m3gen.runtime.quick_source import quickly


class Missing(Exception):
    """A table names a kernel that is not there or cannot be imported; says which and why."""


class Modules:
    """A package of generated modules. What cannot be imported is `Missing`, never the end of a load."""

    def __init__(self, package: str | None, place: str) -> None:
        self._package = package
        self.place = place

    @classmethod
    def in_package(cls, name: str) -> Modules:
        """Those of an installed package, such as "m3gen.generated.gfx942"."""
        return cls(name, name)

    @classmethod
    def in_folder(cls, folder: Path) -> Modules:
        """Those of a folder that `m3gen generate` made, as a package with a name of its own."""
        return cls(_import_folder(folder), str(folder))

    def find(self, op: str, key: str) -> ModuleType:
        """The module of one kernel, imported: it has a launcher called `op`, and `workspace`."""
        if self._package is None:
            raise Missing(f"no modules in {self.place}")
        try:
            index = importlib.import_module(self._package).MODULES
            name = index.get(op, {}).get(key)
            if name is None:
                raise Missing(f"no module {op}_{key} in {self.place}")
            with quickly():
                module = importlib.import_module(f"{self._package}.{name}")
        except Missing:
            raise
        except Exception as error:  # a damaged module is as good as none
            raise Missing(f"{op}_{key} in {self.place} cannot be imported: {error}") from error
        if not (callable(getattr(module, op, None)) and callable(getattr(module, "workspace", None))):
            raise Missing(f"{op}_{key} in {self.place} has no launcher {op} with a workspace")
        return module

    def source(self, op: str, key: str) -> str | None:
        """SHA-256 of a module's text as it was generated, None where the index does not say."""
        if self._package is None:
            return None
        try:
            found = importlib.import_module(self._package).SOURCES[op][key]
        except Exception:  # made by an earlier m3gen, or damaged: `find` says so
            return None
        return found if isinstance(found, str) else None


def _import_folder(folder: Path) -> str | None:
    """The name of its package in `sys.modules`, one for each folder and index; None when it is unusable."""
    index = folder / "__init__.py"
    try:
        content = index.read_bytes()
    except OSError:
        return None
    name = "m3gen_generated_" + hashlib.sha256(f"{folder.resolve()}\n".encode() + content).hexdigest()[:16]
    if name not in sys.modules:
        importlib.invalidate_caches()  # the folder may be younger than the import system's listing of it
        spec = importlib.util.spec_from_file_location(name, index, submodule_search_locations=[str(folder)])
        if spec is None or spec.loader is None:
            return None
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        try:
            spec.loader.exec_module(package)
        except Exception:
            del sys.modules[name]
            return None
    return name
