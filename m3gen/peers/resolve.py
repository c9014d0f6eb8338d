"""A peer under one load: its expressions become launches and their work."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from m3gen.codegen.launch import Argument, Launch
from m3gen.errors import UserError
from m3gen.ops.base import Work
from m3gen.peers.arithmetic import Expression, Value, Wrong, evaluate
from m3gen.peers.peer import LaunchText, Peer, TensorText
from m3gen.peers.tensor import SIZES, Tensor
from m3gen.targets import Architecture, Vendor, architecture

T = TypeVar("T")
Load = Mapping[str, Value]

_WHOLE = frozenset({"load_waits", "loads_ahead"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The launches in order with their work, and by launch the tensors among its arguments by parameter."""

    launches: tuple[Launch, ...]
    works: tuple[Work, ...]
    tensors: tuple[Mapping[str, Tensor], ...]


def resolve(peer: Peer, arch: str, given: Load) -> Loaded:
    """Under its defaults, but for what is given (dimensions and derived names). `UserError` naming the place in the
    file whose value makes no sense there."""
    return _resolved(peer, _names(peer, architecture(arch), given))


def samples(peer: Peer, arch: str, given: Load) -> Iterator[tuple[Load, Loaded]]:
    """The small loads of the peer's sample, and what they resolve to."""
    if peer.sample is None:
        return
    target = architecture(arch)
    real = _names(peer, target, given)
    for number, changes in enumerate(peer.sample.loads):
        where = f"sample.loads[{number}]"
        changed = {name: _at(peer, f"{where}.{name}", evaluate, one, real) for name, one in changes.items()}
        names = _names(peer, target, {**given, **changed})
        yield names, _resolved(peer, names)


def require(peer: Peer, arch: str) -> None:
    """`UserError` for an architecture that the file is not for."""
    if peer.archs and arch not in peer.archs:
        raise UserError(f"{peer.file} is for {', '.join(peer.archs)}, not for {arch}: name a device of these")


def _names(peer: Peer, target: Architecture, given: Load) -> dict[str, Value]:
    known = [*peer.dimensions, *peer.derived]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise UserError(f"{peer.file} has no dimension {name}: {hint}")
    names: dict[str, Value] = {
        "arch": target.name,
        "vendor": "amd" if target.vendor is Vendor.AMD else "nvidia",
        "none": None,
        **peer.dimensions,
    }
    names.update({name: value for name, value in given.items() if name in peer.dimensions})
    for name, expression in peer.derived.items():
        names[name] = given[name] if name in given else _at(peer, f"derived.{name}", evaluate, expression, names)
    return names


def _resolved(peer: Peer, names: Mapping[str, Value]) -> Loaded:
    tensors = {name: _at(peer, f"tensors.{name}", _tensor, name, one, names) for name, one in peer.tensors.items()}
    known = {**names, **tensors}
    found = [
        _at(peer, f"launches[{number}] ({one.kernel})", _launch, one, known)
        for number, one in enumerate(peer.launches)
        if _at(peer, f"launches[{number}] ({one.kernel}): when", evaluate, one.when, names)
    ]
    if not found:
        raise UserError(f"{peer.file}: no launch is left under this load: look at their when")
    launches, works, pointers = zip(*found, strict=True)
    return Loaded(launches, works, pointers)


def _tensor(name: str, one: TensorText, names: Mapping[str, Value]) -> Tensor:
    dtype = one.dtype if one.dtype in SIZES else names.get(one.dtype, one.dtype)
    storage = None if one.storage_bytes is None else _integer(one.storage_bytes, names)
    return Tensor.of(
        name,
        str(dtype),
        [_integer(part, names) for part in one.shape],
        None if one.strides is None else [_integer(part, names) for part in one.strides],
        storage,
        _integer(one.offset, names),
    )


def _launch(one: LaunchText, names: Mapping[str, Value]) -> tuple[Launch, Work, Mapping[str, Tensor]]:
    grid = _part("grid", _grid, one.grid, names)
    values = {name: _part(f"arguments.{name}", evaluate, text, names) for name, text in one.arguments.items()}
    pointers = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    arguments: list[tuple[str, Argument]] = [
        (name, value.pointer if isinstance(value, Tensor) else value) for name, value in values.items()
    ]
    options: dict[str, int | bool | str] = {}
    for name, text in one.options.items():
        value = _part(f"options.{name}", evaluate, text, names)
        if value is None:  # not given
            continue
        if not isinstance(value, int | str):
            raise Wrong(f"options.{name}: expected an integer, a flag or a text, got {value!r}")
        options[name] = value
    numbers = {name: _part(f"work.{name}", _work, name, text, names) for name, text in one.work.items()}
    work = Work(kernel=one.kernel, **numbers)  # type: ignore[arg-type]
    return Launch(one.kernel, tuple(arguments), tuple(sorted(options.items())), grid), work, pointers


def _grid(extents: Sequence[Expression], names: Mapping[str, Value]) -> tuple[int, int, int]:
    found = [_integer(one, names) for one in extents]
    if any(one < 1 for one in found):
        raise Wrong(f"expected extents of 1 and more, got {found}")
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _work(name: str, text: Expression, names: Mapping[str, Value]) -> float:
    value = _integer(text, names) if name in _WHOLE else evaluate(text, names)
    if not isinstance(value, int | float) or value < 0 or (name == "idle" and value >= 1):
        raise Wrong(f"expected a number of {'0 to 1' if name == 'idle' else '0 and more'}, got {value!r}")
    return value


def _integer(text: Expression, names: Mapping[str, Value]) -> int:
    value = evaluate(text, names)
    if type(value) is not int:
        raise Wrong(f"{text!r}: expected an integer, got {value!r}")
    return value


def _part(where: str, build: Callable[..., T], *arguments: object) -> T:
    try:
        return build(*arguments)
    except ValueError as error:
        raise Wrong(f"{where}: {error}") from None


def _at(peer: Peer, where: str, build: Callable[..., T], *arguments: object) -> T:
    try:
        return build(*arguments)
    except ValueError as error:
        raise UserError(f"{peer.file}: {where}: {error}") from None
