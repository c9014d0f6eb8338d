"""The known architectures and devices, and how a name finds its entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from m3gen.errors import UserError
from m3gen.targets import amd, nvidia
from m3gen.targets.architecture import Architecture
from m3gen.targets.device import Device

ARCHITECTURES: Mapping[str, Architecture] = {a.name: a for a in amd.ARCHITECTURES + nvidia.ARCHITECTURES}
DEVICES: Mapping[str, Device] = {d.name: d for d in amd.DEVICES + nvidia.DEVICES}

# The device a bare architecture stands for.
_DEFAULTS = {"gfx942": "MI300X", "gfx950": "MI355X", "sm_90": "H200", "sm_100": "B200"}

_AMD_TARGET = re.compile(r"(gfx[0-9a-f]+)(?::(?:sramecc|xnack)[+-])*")  # a target id: gfx942:sramecc+:xnack-
_NVIDIA_TARGET = re.compile(r"(?:sm[_-]?)?(\d{2,3})[af]?")  # sm_90, sm90, sm_90a, 90


class UnknownTarget(UserError):
    """No architecture or device goes by the name that was asked for."""


def architecture(name: str) -> Architecture:
    """The architecture called `name`, in the spelling of Triton, torch or the driver, in any case.

    "gfx942:sramecc+:xnack-" finds gfx942; "sm90", "sm_90a" and "90" find sm_90. Raises `UnknownTarget`.
    """
    spelling = name.strip().lower()
    if match := _AMD_TARGET.fullmatch(spelling):
        spelling = match[1]
    elif match := _NVIDIA_TARGET.fullmatch(spelling):
        spelling = f"sm_{match[1]}"
    try:
        return ARCHITECTURES[spelling]
    except KeyError:
        raise _unknown("architecture", name, spelling, ARCHITECTURES) from None


def device(name: str) -> Device:
    """The device called `name` or by one of its aliases.

    Case, separators and the vendor's prefix do not count: "AMD_Instinct_MI300X_OAM" finds MI300X. Raises
    `UnknownTarget`.
    """
    try:
        return _SPELLINGS[_spelling(name)]
    except KeyError:
        raise _unknown("device", name, _spelling(name), DEVICES) from None


def default_device(arch: str) -> Device:
    """The device that stands for an architecture when none is named. Raises `UnknownTarget`."""
    return DEVICES[_DEFAULTS[architecture(arch).name]]


def _spelling(name: str) -> str:
    """Letters and digits in lower case, without the vendor's prefix."""
    return re.sub(r"^(amdinstinct|amd|nvidia)", "", re.sub(r"[^a-z0-9]", "", name.lower()))


_SPELLINGS = {_spelling(name): d for d in DEVICES.values() for name in (d.name, *d.aliases)}


def _unknown(kind: str, asked: str, spelling: str, known: Iterable[str]) -> UnknownTarget:
    names = {_spelling(name): name for name in known}
    close = get_close_matches(_spelling(spelling), names, n=3, cutoff=0.5)
    nearest = f"nearest {', '.join(names[match] for match in close)}; " if close else ""
    return UnknownTarget(
        f"unknown {kind} {asked!r}: {nearest}known {', '.join(names.values())}; see `m3gen targets`"
    )
