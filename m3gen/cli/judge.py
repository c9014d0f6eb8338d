"""`m3gen judge`: somebody's Triton kernels, predicted as m3gen's own are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from m3gen.cli.options import Json

if TYPE_CHECKING:
    from m3gen.peers.arithmetic import Value
    from m3gen.peers.judgement import Judgement
    from m3gen.targets import Device

JUDGED, FAILED = 0, 1
WIDTH = 110  # of the tables


def judge(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What describes the kernels: see docs/peers.md.")],
    device: Annotated[
        str, typer.Option("--device", metavar="DEVICE", help="GPU or architecture, such as MI300X or sm_90.")
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A dimension of the file, such as rows=64. Repeat it."),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", metavar="PATH", help="Folder that the file's paths are below. Default: that of the file."
        ),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--listing", help="Also print the machine code of every kernel.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict the time of any @triton.jit kernels.

    They are compiled for the device, their machine code is read and, on AMD, run once on a small load in the
    emulator; the model that predicts m3gen's kernels predicts theirs. No GPU is needed and nothing is measured. The
    Python that FILE names is imported: trust it.

    \b
    Exit status:
      0    judged
      1    a kernel does not compile, or does not fit the device
      2    bad input or environment
      130  interrupted
    """
    from m3gen.cli import output, work
    from m3gen.peers import read
    from m3gen.peers.judgement import judge as judgement
    from m3gen.peers.resolve import require, resolve
    from m3gen.peers.worker import PeerRequest
    from m3gen.report import peer as report
    from m3gen.spec import Status

    peer, target, load = read(file), _device(device), _load(sets or [])
    require(peer, target.arch)
    resolve(peer, target.arch, load)  # what is wrong with the file or the load is said before anything is started
    request = PeerRequest(peer, _root(root, file), target.arch, (load,))
    [result] = work.judged([request], 1)
    if result.status is not Status.OK:
        if as_json:
            fields = {
                "peer": peer.name,
                "device": target.name,
                "status": str(result.status),
                "reason": result.reason,
            }
            output.print_object("judge", fields)
        else:
            output.stderr().print(f"m3gen: {peer.name} on {target.name}: {result.reason}", soft_wrap=True)
        raise typer.Exit(FAILED)
    found = judgement(peer, target, load, result)
    listings = _listings(found) if listing else {}
    if as_json:
        more = {"listings": listings} if listing else {}
        output.print_object("judge", {**report.report_object(found), **more})
        return
    output.stdout(least=WIDTH).print(report.report(found), soft_wrap=True)
    for kernel, text in listings.items():
        sys.stdout.write(f"\n{kernel}\n{text}\n")


def _device(name: str) -> Device:
    """A device by its name, or the default one of an architecture; `UserError` naming the nearest."""
    from m3gen.targets import UnknownTarget, architecture, default_device
    from m3gen.targets import device as known

    try:
        return known(name)
    except UnknownTarget as unknown:
        try:
            return default_device(architecture(name).name)
        except UnknownTarget:
            raise unknown from None


def _root(root: Path | None, file: Path) -> Path:
    from m3gen.errors import UserError

    folder = (root or file.parent).resolve()
    if not folder.is_dir():
        raise UserError(f"--root {root} is no folder: name the one that the paths in {file} are below")
    return folder


def _load(sets: list[str]) -> dict[str, Value]:
    """ "rows=64" as a number, "kv=bf16" as a text."""
    from m3gen.errors import UserError

    found: dict[str, Value] = {}
    for one in sets:
        name, equals, text = one.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UserError(f"--set {one!r}: expected NAME=VALUE, such as --set rows=64")
        if name.strip() in found:
            raise UserError(f"--set {name.strip()} is given twice: give it once")
        found[name.strip()] = _value(text.strip())
    return found


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _listings(found: Judgement) -> dict[str, str]:
    """Machine code by kernel, as the worker left it in the cache."""
    from m3gen.compiler.cache import FactsCache
    from m3gen.paths import cache_dir

    cache = FactsCache(cache_dir() / "facts")
    each = zip(found.keys, found.facts, strict=True)
    return {one.kernel: cache.assembly(key) or "not in the cache" for key, one in each}
