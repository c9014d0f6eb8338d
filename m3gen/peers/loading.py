"""A peer's kernels from its Python, in a worker: what it imports of the rest of its project may be stubbed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from m3gen.compiler.compile import CompileError, one_line
from m3gen.errors import UserError
from m3gen.peers.peer import Peer, Place, Stub

INERT = "inert"


class Inert:
    """In the place of something that is imported and not needed: any attribute and any call of it is itself, but
    calls of the attributes in `gives`."""

    def __init__(self, gives: Mapping[str, Any] | None = None) -> None:
        self._gives = gives or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._gives:
            given = self._gives[name]
            return lambda *_, **__: given
        return self

    def __call__(self, *_: Any, **__: Any) -> Inert:
        return self

    def __bool__(self) -> bool:
        return False


def kernels(peer: Peer, root: Path) -> types.ModuleType:
    """A module of the peer's kernels by name, freed of what tunes and parametrises them at launch.

    The peer's module is run. `UserError` where it is not to be found, `CompileError` where it does not load.
    """
    module = _module(peer, root)
    found = types.ModuleType(peer.name)
    for launch in peer.launches:
        kernel: Any = getattr(module, launch.kernel, None)
        if kernel is None:
            raise UserError(f"{peer.file}: {module.__name__} has no {launch.kernel}: correct the kernel's name")
        while not isinstance(getattr(kernel, "fn", _nothing), types.FunctionType):  # heuristics, autotune
            kernel = kernel.fn
        setattr(found, launch.kernel, kernel)
    return found


def _nothing() -> None:
    """`fn` of what has none: to be refused when it is compiled."""


def _module(peer: Peer, root: Path) -> types.ModuleType:
    place = peer.place
    path = root / place.path
    if place.path and not path.is_file():
        raise UserError(f"{peer.file}: there is no {place.path} in {root}: name the folder it is in with --root")
    _stub(place, root, peer.file)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        if place.module:
            return importlib.import_module(place.module)
        spec = importlib.util.spec_from_file_location(f"m3gen_peer_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except ModuleNotFoundError as error:
        raise UserError(
            f"{peer.file}: {place.module or place.path} needs {error.name}: install it, stub it, or name the folder "
            "it is in with --root"
        ) from None
    except Exception as error:
        raise CompileError(f"{place.module or place.path} does not load: {one_line(error)}") from error


def _stub(place: Place, root: Path, file: str) -> None:
    """Put the stubs in place; what another peer has loaded below them goes."""
    for name in place.stubs:
        for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            del sys.modules[loaded]
    for name, contents in place.stubs.items():
        module = types.ModuleType(name)
        if contents is None:
            module.__path__ = [str(root / name.replace(".", "/"))]
        else:
            vars(module).update(_contents(name, contents, file))
        sys.modules[name] = module


def _contents(stub: str, contents: Stub, file: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, reference in contents.items():
        where = f'{file}: stubs."{stub}".{name}'
        if isinstance(reference, str):
            found[name] = Inert() if reference == INERT else _imported(reference, where)
        else:
            found[name] = Inert({part: _imported(one, f"{where}.{part}") for part, one in reference.items()})
    return found


def _imported(reference: str, where: str) -> Any:
    """What a dotted name, with an attribute after a colon, stands for."""
    module, _, attribute = reference.partition(":")
    try:
        imported = importlib.import_module(module)
        return getattr(imported, attribute) if attribute else imported
    except (ImportError, AttributeError) as error:
        raise UserError(f"{where}: {error}") from None
