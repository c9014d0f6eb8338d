"""`m3gen targets`: the catalogue of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from m3gen.cli.options import Json

if TYPE_CHECKING:
    from m3gen.targets import Architecture, Device


def targets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A device or an architecture, to see it in full."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the known GPUs, or show one in full.

    Every number comes with its source.
    """
    from m3gen.cli import output
    from m3gen.report import catalogue
    from m3gen.targets import ARCHITECTURES, DEVICES

    devices, architectures = (DEVICES.values(), ARCHITECTURES.values()) if name is None else _named(name)
    if as_json:
        fields = {
            "devices": [catalogue.device_object(one) for one in devices],
            "architectures": [catalogue.architecture_object(one) for one in architectures],
        }
        output.print_object("targets", fields)
    elif name is None:
        output.stdout().print(catalogue.devices(devices))
    else:
        output.stdout().print(catalogue.sheets(devices, architectures), crop=False)


def _named(name: str) -> tuple[list[Device], list[Architecture]]:
    """A device and its architecture, or an architecture alone; `UserError` naming the nearest of both."""
    from m3gen.targets import UnknownTarget, architecture, device

    try:
        one = device(name)
    except UnknownTarget as unknown:
        try:
            return [], [architecture(name)]
        except UnknownTarget:
            raise unknown from None
    return [one], [one.architecture]
