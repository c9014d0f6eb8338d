"""The catalogue of GPUs: all of it in a table, one device in full with the source of every number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.report import layout
from m3gen.targets import Architecture, Device

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
_BINARY = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def devices(catalogue: Iterable[Device]) -> RenderableType:
    """One line a device; fits 80 columns."""
    columns = ("device", "arch", ">CUs", ">MHz", ">memory\nGiB", ">\nTB/s", ">L2\nMiB", ">cache\nMiB")
    cells = [
        (
            one.name,
            one.arch,
            str(one.compute_units),
            f"{one.clock_hz / 1e6:.0f}",
            f"{one.memory_bytes / (1 << 30):.0f}",
            f"{one.memory_bytes_per_s / 1e12:.2f}",
            f"{one.l2_bytes / (1 << 20):.0f}",
            f"{one.last_level_bytes / (1 << 20):.0f}" if one.last_level_bytes else "-",
            f"{one.matrix_flops('bf16') / 1e12:.0f}",
            one.architecture.fp8,
        )
        for one in catalogue
    ]
    return layout.table((*columns, ">bf16\nTFLOP/s", "fp8"), cells)


def sheets(devices: Iterable[Device], architectures: Iterable[Architecture]) -> RenderableType:
    """Everything that is known of these, each number with the number of its source in the list below."""
    numbers: dict[str, int] = {}
    parts: list[RenderableType] = []
    for device in devices:
        aliases = f" (also {', '.join(device.aliases)})" if device.aliases else ""
        parts += [layout.title(f"{device.name}{aliases}"), _sheet(device, device.sources, numbers)]
    for one in architectures:
        heading = f"{one.name}: {one.vendor}, Triton backend {one.backend}:{one.backend_arch}"
        parts += [layout.title(heading), _sheet(one, one.sources, numbers)]
    sources = "\n".join(f"  [{number}] {source}" for source, number in numbers.items())
    return Group(*parts, layout.title("sources"), Text(sources, no_wrap=True, overflow="ignore"))


def device_object(one: Device) -> dict[str, Any]:
    """A device as plain data; `arch` names its architecture."""
    values = {f.name: getattr(one, f.name) for f in fields(one) if f.name != "architecture"}
    return {**values, "arch": one.arch, "aliases": list(one.aliases), "sources": dict(one.sources)}


def architecture_object(one: Architecture) -> dict[str, Any]:
    """An architecture as plain data."""
    return {f.name: getattr(one, f.name) for f in fields(one)} | {"vendor": str(one.vendor)}


def quantity(name: str, value: object) -> str:
    """A field's value with the unit that its name says: "5.30 TB/s", "192 GiB", "2.10 GHz"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item:,}" for key, item in value.items())
    if isinstance(value, int | float) and value:
        if name.endswith("_bytes_per_s"):
            return _scaled(value, "B/s")
        if name.endswith("_hz"):
            return _scaled(value, "Hz")
        if "bytes" in name and not name.endswith("_clock"):
            return _binary(int(value))
        return f"{value:,}"
    return str(value)


def _sheet(one: Device | Architecture, sources: Mapping[str, str], numbers: dict[str, int]) -> RenderableType:
    """Every field that has a source, which is added to `numbers` if it is new."""
    rows = []
    for field in fields(one):
        if (source := sources.get(field.name)) is not None:
            number = numbers.setdefault(source, len(numbers) + 1)
            rows.append((f"  {field.name}", f"{quantity(field.name, getattr(one, field.name))} [{number}]"))
    return Group(layout.pairs(rows), Text(""))


def _scaled(value: float, unit: str) -> str:
    scale, prefix = next(((s, p) for s, p in _SCALES if value >= s), (1.0, ""))
    return f"{value / scale:.2f} {prefix}{unit}"


def _binary(value: int) -> str:
    scale, unit = next(((s, u) for s, u in _BINARY if value >= s), (1, "B"))
    return f"{value / scale:g} {unit}"
